/** The logins by which trust is verified, by the shell itself with a stand-in for ssh. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AreaFacts, HostExec } from '../../../src/ops/kernel/area.ts'
import type { TrustFacts } from '../../../src/ops/trust/facts.ts'
import { verifyTrust } from '../../../src/ops/trust/trust.ts'
import { writeProgram } from '../../support/program.ts'

let bin: string

beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'muster-logins-'))
})
afterEach(() => rmSync(bin, { recursive: true, force: true }))

const stub = (name: string, text: string) => {
  writeProgram(join(bin, name), text)
}
const here: HostExec = {
  async exec(_host, script) {
    const { stdout, stderr } = spawnSync('sh', ['-c', script], { env: { PATH: `${bin}:/usr/bin:/bin` } })
    return { outcome: { kind: 'exit', code: 0 }, stdout, stderr, durationMs: 0 }
  },
}
const logins = async (ssh: string) => {
  // The peer is the word before the last, which is the command.
  stub('ssh', `for word; do peer=$last; last=$word; done\necho "$peer" >> ${bin}/tried\n${ssh}`)
  stub('sleep', 'exit 0')
  const members = ['m1', 'm2'].map((name) => ({ name, address: name, port: 22, user: 'ann' }))
  const facts = new Map(members.map(({ name }) => [name, {}])) as unknown as AreaFacts<TrustFacts>['facts']
  const findings = await verifyTrust(members, { facts, away: new Map() }, here)
  return { findings, tried: readFileSync(join(bin, 'tried'), 'utf8').split('\n').slice(0, -1).sort() }
}

describe('a login', () => {
  it('that a busy host rejects before it begins is tried again', async () => {
    const { findings, tried } = await logins(`[ "$(grep -c -x "$peer" ${bin}/tried)" -lt 3 ] || exit 0
echo 'kex_exchange_identification: read: Connection reset by peer' >&2; exit 255`)
    expect(findings).toEqual([])
    expect(tried).toEqual(['m1', 'm1', 'm1', 'm2', 'm2', 'm2'])
  })

  it('that ends without a message is tried again', async () => {
    const { findings, tried } = await logins(`[ "$(grep -c -x "$peer" ${bin}/tried)" -lt 2 ] || exit 0; exit 255`)
    expect(findings).toEqual([])
    expect(tried).toEqual(['m1', 'm1', 'm2', 'm2'])
  })

  it('that is rejected every time is reported with the last words of ssh', async () => {
    const { findings, tried } = await logins(`[ "$peer" = m2 ] || exit 0
echo 'kex_exchange_identification: Connection closed by remote host' >&2
echo 'Connection closed by 10.0.0.2 port 22' >&2; exit 255`)
    const detail = 'Connection closed by 10.0.0.2 port 22'
    expect(findings).toEqual([{ host: 'm1', gravity: 'blocker', id: 'login', cause: 'cannot log in to m2', detail }])
    expect(tried).toEqual(['m1', 'm2', 'm2', 'm2', 'm2'])
  })

  it('that is refused is not tried again', async () => {
    const { findings, tried } = await logins('echo "ann@$peer: Permission denied (publickey)." >&2; exit 255')
    expect(findings.map(({ host, detail }) => `${host}: ${detail}`)).toEqual([
      'm1: ann@m2: Permission denied (publickey).',
      'm2: ann@m1: Permission denied (publickey).',
    ])
    expect(tried).toEqual(['m1', 'm2'])
  })
})
