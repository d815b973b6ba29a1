/** The lines that trust writes into the files of ~/.ssh. Pure. */
import { createHash, createHmac } from 'node:crypto'

/** A host of the mesh as the others reach it. */
export type Member = { readonly name: string; readonly address: string; readonly port: number; readonly user: string }

/** Stands behind a key, so that its line can be told from those of other hosts. */
export function commentOf(name: string): string {
  return `muster-trust@${name}`
}

/** sshd(8), SSH_KNOWN_HOSTS FILE FORMAT: the names in plain text, or each hashed in a line of its own. */
export function knownHostsLines(member: Member, keys: readonly string[], isHashed: boolean): string[] {
  const { name, address, port } = member
  const lookups = [...new Set([name, address].map((each) => each.toLowerCase()))].map((each) =>
    port === 22 ? each : `[${each}]:${port}`,
  )
  const fields = isHashed ? lookups.map(hashed) : [lookups.join(',')]
  return keys.flatMap((key) => fields.map((field) => `${field} ${key} ${commentOf(name)}`))
}

/** The salt is the name's own, so that the same line comes out each time. */
function hashed(lookup: string): string {
  const salt = createHash('sha1').update(`muster ${lookup}`).digest()
  return `|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(lookup).digest('base64')}`
}

export function hasHashedNames(knownHosts: string): boolean {
  return /^\|1\|/m.test(knownHosts)
}

/**
 * ssh_config(5): the first value wins, so the block stands at the top; `Match all` gives what follows it back to every host.
 * Host keys that ssh would learn by itself stay out of known_hosts, as nobody would remove them.
 */
export function configLines(members: readonly Member[]): string[] {
  const namesOf = ({ name, address }: Member) => [...new Set([name, address])].join(' ')
  const ways = members.flatMap((member) => [
    `Host ${namesOf(member)}`,
    `  HostName ${member.address}`,
    `  Port ${member.port}`,
    `  User ${member.user}`,
  ])
  const all = `Host ${members.map(namesOf).join(' ')}`
  return [...ways, all, '  IdentityFile ~/.ssh/id_muster', '  IdentitiesOnly yes', '  UpdateHostKeys no', 'Match all']
}
