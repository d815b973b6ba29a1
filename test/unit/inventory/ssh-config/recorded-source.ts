/** What a real `ssh -G` answered for the hosts of test/fixtures/inventory/ssh-config/config. */
import { existsSync, readFileSync } from 'node:fs'
import {
  type LocalUser,
  parseSshConfigValues,
  type SshConfigQuestion,
  type SshConfigSource,
} from '../../../../src/inventory/ssh-config/source.ts'

export const FIXTURES = new URL('../../../fixtures/inventory/ssh-config/', import.meta.url).pathname
export const ann: LocalUser = { name: 'ann', uid: 1000, home: '/home/ann', hostName: 'desk.example.org' }

/** A host that the configuration does not mention is answered like `inner`. */
export function createRecordedSource(): SshConfigSource & { readonly rounds: SshConfigQuestion[][] } {
  const rounds: SshConfigQuestion[][] = []
  return {
    rounds,
    async ask(questions) {
      rounds.push([...questions])
      return questions.map(({ alias, address, port, user, identityFiles = [] }) => {
        const isRecorded = existsSync(`${FIXTURES}answers/${alias}.txt`)
        const text = readFileSync(`${FIXTURES}answers/${isRecorded ? alias : 'inner'}.txt`, 'utf8')
        const values = new Map(parseSshConfigValues(isRecorded ? text : text.replaceAll('inner', alias)))
        if (address !== undefined) values.set('hostname', [address])
        if (port !== undefined) values.set('port', [String(port)])
        if (user !== undefined) values.set('user', [user])
        if (identityFiles.length > 0) values.set('identityfile', identityFiles)
        return { ok: true, values }
      })
    },
  }
}
