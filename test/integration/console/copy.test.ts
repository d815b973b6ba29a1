/** Files to hosts from the console, over the connections of its shells. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'

describe('a copy from the console', () => {
  let console: ConsoleDriver
  let directory: string

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-console-copy-'))
    console = await openConsole({ args: ['demo', '--count', '3'] })
    await console.expectAllOpen()
  })

  afterAll(async () => {
    await console?.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const copy = async (line: string): Promise<void> => {
    await console.leader(':')
    await console.type(`copy ${line}`)
    await console.key('Enter')
    await console.expectMode('copy')
  }

  it('copies a file to every receiver, under a different name on each', async () => {
    writeFileSync(join(directory, 'a b.txt'), 'to all\n')
    await copy(`'${directory}/a b.txt' ${directory}/%h.txt`)
    await console.expectScreen(/3 hosts: 3 ok/)
    for (const host of ['m1', 'm2', 'm3']) expect(readFileSync(join(directory, `${host}.txt`), 'utf8')).toBe('to all\n')
    await console.key('R')
    await console.expectScreen(/Copy again on m\[1-3\]\?/)
    await console.key('y')
    await console.expectScreen(/✓ m2 +0 copied, 1 identical/)
  })

  it('says what failed on which host, and retries only there', async () => {
    mkdirSync(join(directory, 'to-m2', 'data'), { recursive: true })
    writeFileSync(join(directory, 'data'), 'data')
    await copy(`on m[2-3]: ${directory}/data ${directory}/to-%h/`)
    await console.expectScreen(/✗ m2[\s\S]*: Is[\s│║]+a[\s\S]*✓ m3 +1 copied/)
    rmSync(join(directory, 'to-m2', 'data'), { recursive: true })
    await console.key('r')
    await console.expectScreen(/Copy again on m2\?/)
    await console.key('y')
    await console.expectScreen(/✓ m2 +1 copied[\s\S]*✓ m3 +1 copied/)
  })

  it('keeps what was typed when a file is missing, so that it can be corrected', async () => {
    writeFileSync(join(directory, 'there.txt'), 'corrected\n')
    await console.leader('c')
    await console.type(`${directory}/their.txt ${directory}/%h-there.txt`)
    await console.key('Enter')
    await console.expectScreen(/their\.txt: No such file or/)
    await console.key('Ctrl-u')
    await console.type(`${directory}/there.txt ${directory}/%h-there.txt`)
    await console.key('Enter')
    await console.expectScreen(/3 hosts: 3 ok/)
    expect(readFileSync(join(directory, 'm2-there.txt'), 'utf8')).toBe('corrected\n')
  })

  it('says when there is nothing to copy', async () => {
    await copy(`${directory}/no-such-file /tmp/`)
    await console.expectScreen(/! .*no-such-file:/)
    await console.expectScreen(/✗ m1 +failed: there is nothing to copy/)
  })
})
