/** `muster up, status and down trust` on nine real hosts: from nothing to logins along every pair, and back without a trace. */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import type { Lab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'
import { type Mesh, startMesh } from './mesh.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'ssh-keygen', 'flock')

type Event = Readonly<Record<string, unknown>> & { readonly type: string; readonly host: string }

const eventsOf = ({ stdout }: RunResult, type: string): Event[] =>
  stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Event)
    .filter((event) => event.type === type)

describe.skipIf(!canRun)('trust on nine hosts', { timeout: 400_000 }, () => {
  let mesh: Mesh
  let lab: Lab
  let before: ReadonlyMap<string, string>

  const muster = (...args: readonly string[]) => mesh.muster(...args)
  const mustExec = (name: string, command: string) => mesh.exec(name, command)
  const filesOf = (name: string) => mesh.filesOf(name)

  beforeAll(async () => {
    // One on another port, and one whose known_hosts has hashed names.
    mesh = await startMesh({
      count: 9,
      perHost: (name) => (name === 'm2' ? { sshdOptions: { Port: '1822' } } : {}),
    })
    lab = mesh.lab
    const text = readFileSync(lab.hostsFile, 'utf8').replace('10.81.0.2 }', '10.81.0.2, port: 1822 }')
    writeFileSync(lab.hostsFile, text)
    const known = readFileSync(`${lab.directory}/home/.ssh/known_hosts`, 'utf8')
    const line = known.split('\n').find((each) => each.startsWith('m2,'))
    writeFileSync(`${lab.directory}/home/.ssh/known_hosts`, `${known}${line?.replace(/^\S+/, '[10.81.0.2]:1822')}\n`)
    await mustExec(
      'm3',
      'echo "elsewhere ssh-ed25519 AAAA" > .ssh/known_hosts && ssh-keygen -q -H -f .ssh/known_hosts; rm -f .ssh/known_hosts.old',
    )
    await mustExec(
      'm4',
      'printf "Host *\\n  LogLevel ERROR" > .ssh/config; printf "# no line end" >> .ssh/authorized_keys',
    )
    before = new Map(await Promise.all(lab.names.map(async (name) => [name, await filesOf(name)] as const)))
  })
  afterAll(async () => await lab?.stop())

  it('reports that nothing is set up', async () => {
    const status = await muster('status', 'trust', '--json')
    expect(status.code).toBe(1)
    expect(eventsOf(status, 'status').map(({ host, status }) => [host, status])).toEqual(
      lab.names.map((name) => [name, 'missing']),
    )
  })

  it('shows the plan without changing anything', async () => {
    const plan = await muster('up', 'trust', '--dry-run')
    expect(plan.code).toBe(0)
    expect(plan.stdout).toMatch(/^trust · SSH key · m\[1-9\]$/m)
    expect(plan.stdout).toMatch(/^ {4}\+ \[m2\]:1822,\[10\.81\.0\.2\]:1822 ssh-ed25519 /m)
    expect(plan.stdout).toMatch(/^9 hosts: 36 steps would be done$/m)
    for (const name of lab.names) expect(await filesOf(name)).toBe(before.get(name))
  })

  it('asks before it changes anything, and changes nothing if it cannot ask', async () => {
    const up = await muster('up', 'trust')
    expect([up.code, up.stderr]).toEqual([
      2,
      expect.stringMatching(/^muster: cannot ask for confirmation: there is no terminal\nAdd --yes/),
    ])
  })

  it('sets up untouched hosts', async () => {
    const up = await muster('up', 'trust', '--yes', '--json')
    expect(up.stderr).toBe('')
    expect(eventsOf(up, 'step').filter(({ state }) => state === 'failed')).toEqual([])
    expect(eventsOf(up, 'operation').filter(({ verdict }) => verdict === 'blocked')).toEqual([])
    expect(eventsOf(up, 'finding')).toEqual([])
    expect(up.code).toBe(0)
    expect(eventsOf(up, 'step').filter(({ state }) => state === 'done')).toHaveLength(36)
    expect(eventsOf(up, 'summary')).toMatchObject([{ hosts: 9, done: 36, failed: 0, unreachable: 0, findings: 0 }])
  })

  it('allows logins by name and by address, on every port', async () => {
    expect(await mustExec('m9', 'ssh -o BatchMode=yes m2 hostname')).toBe('m2\n')
    expect(await mustExec('m2', 'ssh -o BatchMode=yes 10.81.0.3 hostname')).toBe('m3\n')
    expect(await mustExec('m3', 'ssh -o BatchMode=yes m4 hostname')).toBe('m4\n')
  })

  it('changes nothing the second time, and says so', async () => {
    const there = await Promise.all(lab.names.map(filesOf))
    const up = await muster('up', 'trust')
    expect([up.code, up.stderr]).toEqual([0, ''])
    expect(up.stdout).toMatch(/nothing to do: ~\/\.ssh\/id_muster exists/)
    expect(up.stdout).toMatch(/^9 hosts: no change: nothing to do \(muster status tests whether it works\)$/m)
    expect(await Promise.all(lab.names.map(filesOf))).toEqual(there)
    const status = await muster('status')
    expect([status.code, status.stdout]).toEqual([0, 'good     trust · m[1-9]\n9 good\n'])
  })

  it('reports a pair that no longer works, and why', async () => {
    await mustExec('m5', 'ip route add unreachable 10.81.0.9')
    await mustExec('m9', 'ip route add unreachable 10.81.0.5')
    const status = await muster('status', '--json')
    await mustExec('m5', 'ip route del unreachable 10.81.0.9')
    await mustExec('m9', 'ip route del unreachable 10.81.0.5')
    expect(status.code).toBe(1)
    const failed = eventsOf(status, 'status').filter(({ status }) => status !== 'good')
    expect(failed.map(({ host, status }) => `${host} ${status}`)).toEqual(['m5 failed', 'm9 failed'])
    expect(eventsOf(status, 'finding').map(({ host, cause }) => `${host}: ${cause}`)).toEqual([
      'm5: cannot log in to m9',
      'm9: cannot log in to m5',
    ])
  })

  it('repairs foreign changes, and leaves foreign lines alone', async () => {
    await mustExec('m6', 'sed -i /muster-trust@m1/d .ssh/authorized_keys && echo "# mine" >> .ssh/authorized_keys')
    const status = await muster('status', '--on', 'm6')
    expect(status.code).toBe(1)
    expect(status.stdout).toMatch(
      /^differs {2}trust · m6: authorized keys: differs \(\+ ssh-ed25519 .*m1\)\n1 differs\n$/,
    )
    const up = await muster('up', 'trust', '--yes')
    expect([up.code, up.stderr]).toEqual([0, ''])
    expect(up.stdout).toMatch(/^m6: change ~\/\.ssh\/authorized_keys: done/m)
    expect(up.stdout).toMatch(/^9 hosts: 1 done$/m)
    expect(await mustExec('m6', 'tail -n 1 .ssh/authorized_keys')).toBe('# mine\n')
    await mustExec('m6', "sed -i '$d' .ssh/authorized_keys")
  })

  it('keeps an unreachable host in the lists of the others', async () => {
    await lab.host('m7').linkDown()
    const up = await muster('--connect-timeout', '20', 'up', 'trust', '--yes')
    await lab.host('m7').linkUp()
    expect(up.code).toBe(4)
    expect(up.stdout).toMatch(/^trust · the host · m7\n {2}! not reached: /m)
    expect(up.stdout).toMatch(
      /^9 hosts: no change: nothing to do \(muster status tests whether it works\), 1 not reached$/m,
    )
  })

  it('restores the hosts', async () => {
    const down = await muster('down', 'trust', '--yes')
    expect([down.code, down.stderr]).toEqual([0, ''])
    expect(down.stdout).toMatch(/^9 hosts: 36 done$/m)
    for (const name of lab.names) expect(await filesOf(name)).toBe(before.get(name))
    const again = await muster('down', 'trust')
    expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/^9 hosts: no change: nothing to do$/m)])
  })

  it('has written each step to the journal, without scripts and output', async () => {
    const { stdout } = await lab.run([
      'sh',
      '-c',
      'cat "$HOME"/.local/state/muster/journal/*.jsonl; ls -l "$HOME"/.local/state/muster/journal',
    ])
    const lines = stdout
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, string>)
    const ended = lines.filter(({ event }) => event === 'end')
    expect(ended).toHaveLength(36 + 1 + 36)
    expect(ended[0]).toMatchObject({
      who: expect.stringMatching(/^root@/),
      result: 'done',
      host: expect.stringMatching(/^m\d$/),
    })
    expect(stdout).not.toMatch(/PRIVATE|ssh-ed25519/)
    expect(stdout).toMatch(/^-rw------- /m)
  })
})
