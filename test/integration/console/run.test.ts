/** Commands beside the shells: over the same connections, folded while they run, and nothing left behind. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startTimeOf } from '../../lab/cluster/processes.ts'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { waitUntil } from '../../support/wait-until.ts'

const HOSTS = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6']

describe('a command beside the shells', () => {
  let console: ConsoleDriver
  let directory: string

  beforeAll(async () => {
    console = await openConsole({ args: ['demo'] })
    await console.expectReady()
  })

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-console-run-'))
    return () => rmSync(directory, { recursive: true, force: true })
  })

  afterAll(async () => {
    await console?.close()
  })

  /** The process id in a file; undefined until it was written whole. */
  const pidIn = (file: string): number | undefined => {
    const text = existsSync(join(directory, file)) ? readFileSync(join(directory, file), 'utf8') : ''
    return text.endsWith('\n') ? Number(text) : undefined
  }
  /** By the palette, as `:run` is typed elsewhere. */
  const run = async (line: string): Promise<void> => {
    await console.leader(':')
    await console.type(`run ${line}`)
    await console.key('Enter')
    await console.expectMode('run')
  }

  it('folds equal output, and shows failures first, with the time of each', async () => {
    await run("cat release; test %n -ne 2 || { echo 'no such thing' >&2; exit 3; }")
    await console.expectScreen(/6 hosts: 5 ok, 1 failed/)
    await console.expectScreen(/✗ m2 +exit 3 +\d+\.\d s[\s\S]*! no such thing[\s\S]*✓ m\[1,4-6\] \(4\) +ok +\d+\.\d s/)
    await console.expectHeader(/RUN VIEW · hosts get no keys/)
  })

  it('leaves the shells alone, and returns the keys to them', async () => {
    await run('echo from the run')
    await console.expectScreen(/6 hosts: 6 ok/)
    await console.type('kk')
    await console.key('Tab')
    await console.expectMode('shells')
    await console.expectHeader(/TYPING INTO ALL 6/)
    await console.type('echo typed-$((40+2))\r')
    await console.expectOnAll(['m1', 'm2'], () => /^typed-42$/m)
    await console.expectScreen(/✓ m\[1-6\] \(6\)/)
    await console.leader('o')
    await console.expectMode('run')
  })

  it('runs on a given host set without changing the receivers', async () => {
    await run('on @odd: echo %h')
    await console.expectScreen(/3 hosts: 3 ok/)
    await console.expectReceivers(...HOSTS)
  })

  it('shows what differs from the majority, and the whole output of one group', async () => {
    await run('seq 40; cat release')
    await console.expectScreen(/6 hosts: 6 ok/)
    await console.key('d')
    await console.expectScreen(/-app 1\.4\.2\s*║/)
    await console.expectScreen(/\+app 1\.4\.1\s*║/)
    await console.key('d', 'G', 'Enter', 'G')
    await console.expectScreen(/║ {3}40\s+║[\s\S]*║ {3}app 1\.4\.1/)
    await console.key('Escape')
    await console.expectScreen(/✓ m\[1-2,4-6\] \(5\)/)
  })

  it('searches the whole output', async () => {
    await run('seq -f "line %g of $(hostname)" 300')
    await console.expectScreen(/6 hosts: 6 ok/)
    await console.key('/')
    await console.type('LINE 250 of M4'.toLowerCase())
    await console.key('Enter')
    await console.expectScreen(/▸ line 250 of m4/)
    await console.key('/')
    await console.type('nowhere to be found')
    await console.key('Enter')
    await console.expectScreen(/not found/)
  })

  it('retries on the failed hosts only', async () => {
    await run(`echo once >> ${directory}/%h; test -e ${directory}/go -o %n -ne 4`)
    await console.expectScreen(/6 hosts: 5 ok, 1 failed/)
    writeFileSync(join(directory, 'go'), '')
    await console.key('r')
    await console.expectScreen(/Run again on m4\?/)
    await console.key('y')
    await console.expectScreen(/6 hosts: 6 ok/)
    const counts = HOSTS.map((host) => readFileSync(join(directory, host), 'utf8').trim().split('\n').length)
    expect(counts).toEqual([1, 1, 1, 2, 1, 1])
  })

  it('saves the output of each host, and never overwrites a file', async () => {
    await run('hostname; echo trouble >&2')
    await console.expectScreen(/6 hosts: 6 ok/)
    const save = async (): Promise<void> => {
      await console.key('s')
      await console.type(join(directory, 'kept', 'here'))
      await console.key('Enter')
    }
    await save()
    await console.expectScreen(/saved the output of m\[1-6\] to/)
    expect(readFileSync(join(directory, 'kept', 'here', 'm3.out'), 'utf8')).toBe('m3\n')
    expect(readFileSync(join(directory, 'kept', 'here', 'm3.err'), 'utf8')).toBe('trouble\n')
    await save()
    await console.expectScreen(/Directory: [\s\S]*cannot save: [\s\S]*would be[\s│║]+overwritten/)
    await console.key('Escape')
    await console.expectMode('run')
  })

  it('stops the command on every host when it is cancelled, and says so', async () => {
    await run(`sh -c 'echo $$ > ${directory}/%h; exec sleep 1000'`)
    await waitUntil(() => HOSTS.every((host) => pidIn(host) !== undefined), 'the commands')
    await console.expectScreen(/running \d+\.\d s/)
    await console.key('Ctrl-c')
    await console.expectScreen(/6 hosts: 6 cancelled/)
    for (const host of HOSTS) {
      const pid = pidIn(host) ?? 0
      await waitUntil(() => startTimeOf(pid) === undefined, `the command on ${host} to end`)
    }
  })

  it('continues when the terminal is resized; a small one shows either the shells or the run', async () => {
    await run(`echo begun; until test -e ${directory}/go; do sleep 0.05; done; echo done`)
    await console.expectScreen(/begun/)
    await console.resize(80, 24)
    await console.expectScreen(/^║ {3}begun/m)
    await console.key('Tab')
    await console.expectHeader(/TYPING INTO ALL 6/)
    await console.type(`touch ${directory}/go\r`)
    await console.expectScreen(/done: “echo begun/, { whileBusy: true })
    await console.leader('o')
    await console.expectScreen(/✓ m\[1-6\] \(6\)[\s\S]*done/)
    await console.resize(240, 67)
    await console.expectScreen(/RUN VIEW · hosts get no keys[\s\S]*║ {3}done[\s\S]* ● m6 /)
    await console.resize(120, 40)
  })

  it('shows hostile output without letting it act on the terminal', async () => {
    await run(`printf '\\033]0;owned\\007\\033[2Jtext\\303\\n'`)
    await console.expectScreen(/\\x1b\]0;owned\\x07\\x1b\[2Jtext/)
    await console.expectHeader(/RUN VIEW/)
  })

  it('asks before the console closes while something runs, and then leaves nothing behind', async () => {
    await run(`on m1: sh -c 'echo $$ > ${directory}/pid; exec sleep 1000'`)
    await waitUntil(() => pidIn('pid') !== undefined, 'the command')
    const pid = pidIn('pid') ?? 0
    await console.leader('q')
    await console.expectMode('dialog:quit')
    await console.key('Escape')
    await console.expectMode('run')
    expect(startTimeOf(pid)).toBeDefined()
    await console.leader('q')
    await console.expectMode('dialog:quit')
    console.send('y')
    expect(await console.ended()).toEqual({ code: 0 })
    await waitUntil(() => startTimeOf(pid) === undefined, 'the command to end')
  })
})
