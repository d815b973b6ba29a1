/** Hosts are trusted as ssh trusts them: one table, played by the system's ssh and by Muster against the same sshd. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createOpensshTransport } from '../../../src/ssh/openssh/openssh-transport.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { requirement } from '../../support/requirements.ts'
import { type Case, verdictOfMuster, verdictOfSsh } from './verdicts/judges.ts'
import { KNOWN_HOSTS_CASES } from './verdicts/known-hosts-cases.ts'
import { prepareServers, type Servers } from './verdicts/servers.ts'
import { SSH_CONFIG_CASES } from './verdicts/ssh-config-cases.ts'

const CASES = { 'known_hosts says that it': KNOWN_HOSTS_CASES, 'ssh_config says that it': SSH_CONFIG_CASES }
const DOCUMENTATION = readFileSync('docs/hosts-yaml.md', 'utf8')

describe.skipIf(!requirement('ssh', 'sshd', 'ssh-keygen'))('a host is trusted as by ssh when', () => {
  let servers: Servers
  const openssh = createOpensshTransport({ spawnPty: spawnLocalPty })
  const transports = { ssh2: createSsh2Transport(), openssh }

  beforeAll(() => {
    servers = prepareServers()
  })
  afterAll(() => {
    openssh[Symbol.dispose]()
    servers.stop()
  })

  describe.each(Object.entries(CASES))('%s', (title, cases) => {
    const directoryOf = (each: Case, judge: string) => {
      const directory = join(servers.directory, `${title.slice(0, 3)}-${cases.indexOf(each)}`)
      mkdirSync(directory, { recursive: true })
      return join(directory, judge)
    }

    it.concurrent.each(cases)('$name', async (each) => {
      if (each.muster !== undefined) expect(DOCUMENTATION).toContain(each.muster.documented)
      const [ssh, muster] = await Promise.all([
        verdictOfSsh(each, directoryOf(each, 'ssh'), servers),
        verdictOfMuster(each, directoryOf(each, 'muster'), servers, transports),
      ])
      const expected = { ssh: each.ssh, muster: each.muster?.verdict ?? each.ssh, via: each.transport ?? 'ssh2' }
      expect(textOf({ ssh, muster: muster.verdict, via: muster.transport })).toBe(textOf(expected))
    })
  })
})

function textOf({ ssh, muster, via }: { ssh: string; muster: string; via: string }): string {
  return `ssh: ${ssh} · Muster: ${muster} · by ${via}`
}
