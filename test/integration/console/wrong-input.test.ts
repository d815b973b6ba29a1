/** Wrong input of every kind: one clear message that says what to do, and the right exit code. No console opens. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'

const HOSTS = 'hosts:\n  m1: { address: 127.0.0.1 }\n  m2: { address: 127.0.0.2 }\n'

describe('wrong input', () => {
  let directory: string

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-wrong-'))
  })

  afterEach(() => {
    rmSync(directory, { recursive: true, force: true })
  })

  it.each([
    { what: 'a hosts file that is not there', yaml: undefined, args: [], code: 3, says: /hosts\.yaml/ },
    { what: 'a file that is not YAML', yaml: 'hosts:\n  m1: {\n', args: [], code: 3, says: /hosts\.yaml:\d+:\d+/ },
    {
      what: 'an unknown key',
      yaml: 'hosts:\n  m1: { adress: 127.0.0.1 }\n',
      args: [],
      code: 3,
      says: /hosts\.yaml:2:9.*adress[\s\S]*address/,
    },
    {
      what: 'several mistakes at once',
      yaml: 'hosts:\n  m1: { port: many }\n  m2: { colour: red }\n',
      args: [],
      code: 3,
      says: /hosts\.yaml:2:[\s\S]*hosts\.yaml:3:/,
    },
    { what: 'an unknown group', yaml: HOSTS, args: ['@workers'], code: 2, says: /workers/ },
    { what: 'a host set that is not closed', yaml: HOSTS, args: ['m[1-'], code: 2, says: /m\[1-/ },
    { what: 'an unknown option', yaml: HOSTS, args: ['--hots', 'x'], code: 2, says: /--hots[\s\S]*--hosts/ },
    { what: 'a number that is none', yaml: HOSTS, args: ['--fan-out', 'many'], code: 2, says: /fan-out/ },
  ])('$what ends with exit code $code', async ({ yaml, args, code, says }) => {
    const file = join(directory, 'hosts.yaml')
    if (yaml !== undefined) writeFileSync(file, yaml)
    await using console = await openConsole({ args: ['--hosts', file, ...args], until: false })
    expect(await console.ended()).toEqual({ code })
    expect(console.screen().join('\n')).toMatch(says)
    expect(console.modes.isAlternateScreen).toBe(false)
  })
})
