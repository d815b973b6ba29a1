/** What known_hosts files may say about a host, and what ssh makes of it. */
import type { Case } from './judges.ts'
import { CERTIFICATE_CASES, FILE_CASES } from './known-hosts-files-cases.ts'

const accepts = (how = 'accept-new') => [`StrictHostKeyChecking ${how}`]
const alias = (name: string) => [`HostKeyAlias ${name}`]
const port = (number: number) => [`Port ${number}`]

const NAMES: readonly Case[] = [
  { name: 'is known by its name', user: 'node1.example.org {ed25519}', ssh: 'accepted' },
  { name: 'is known by the name that was typed only', user: 'node1 {ed25519}', ssh: 'unknown' },
  { name: 'is known in capitals', user: 'NODE1.Example.ORG {ed25519}', ssh: 'accepted' },
  { name: 'is one of several names', user: 'a,node1.example.org,10.0.0.1 {ed25519} comment', ssh: 'accepted' },
  { name: 'is among names with spaces after the comma', user: 'a, node1.example.org {ed25519}', ssh: 'unknown' },
  { name: 'is named by a wildcard', user: '*.example.org {ed25519}', ssh: 'accepted' },
  { name: 'is named by question marks', user: 'node?.example.o?? {ed25519}', ssh: 'accepted' },
  { name: 'is not named by a wildcard that is too short', user: '*.example {ed25519}', ssh: 'unknown' },
  { name: 'is named by a lone star', user: '* {ed25519}', ssh: 'accepted' },
  { name: 'is excluded by a negation before', user: '!node1.example.org,*.example.org {ed25519}', ssh: 'unknown' },
  { name: 'is excluded by a negation after', user: '*.example.org,!node1.* {ed25519}', ssh: 'unknown' },
  { name: 'is not named by a negation of others alone', user: '!other.example.org {ed25519}', ssh: 'unknown' },
  {
    name: 'is excluded by one line and named by the next',
    user: '!node1.*,* {stranger}\nnode1.* {ed25519}',
    ssh: 'accepted',
  },
  { name: 'is named with characters of regular expressions', user: 'node1[.]example(.org)+ {ed25519}', ssh: 'unknown' },
  { name: 'has a dot that stands for itself', user: 'node1xexample.org {ed25519}', ssh: 'unknown' },
  { name: 'is hashed', user: '{hash node1.example.org} {ed25519}', ssh: 'accepted' },
  { name: 'is hashed among others', user: '{hash a} {stranger}\n{hash node1.example.org} {ed25519}', ssh: 'accepted' },
  { name: 'is hashed under another name', user: '{hash node2.example.org} {ed25519}', ssh: 'unknown' },
  { name: 'is hashed in a list, which hashes cannot be', user: 'a,{hash node1.example.org} {ed25519}', ssh: 'unknown' },
  { name: 'has a broken hash', user: '|1|AAAA|BBBB {ed25519}', ssh: 'unknown' },
  { name: 'has a hash of an unknown kind', user: '|2|AAAA|BBBB {ed25519}', ssh: 'unknown' },
  { name: 'is known by its alias', config: alias('blade'), user: 'blade {ed25519}', ssh: 'accepted' },
  {
    name: 'has an alias and is known by its name only',
    config: alias('blade'),
    user: 'node1.example.org {ed25519}',
    ssh: 'unknown',
  },
  {
    name: 'has an alias and a port',
    config: [...alias('blade'), ...port(2200)],
    user: 'blade {ed25519}',
    ssh: 'accepted',
  },
  { name: 'has an alias in capitals', config: alias('Blade'), user: 'blade {ed25519}', ssh: 'accepted' },
  {
    name: 'has an alias in capitals and is hashed so',
    config: alias('Blade'),
    user: '{hash Blade} {ed25519}',
    ssh: 'unknown',
  },
  {
    name: 'has an alias in capitals and is hashed in lower case',
    config: alias('Blade'),
    user: '{hash blade} {ed25519}',
    ssh: 'accepted',
  },
  { name: 'is known with its port', config: port(2200), user: '[node1.example.org]:2200 {ed25519}', ssh: 'accepted' },
  { name: 'is known without its port', config: port(2200), user: 'node1.example.org {ed25519}', ssh: 'accepted' },
  {
    name: 'is known with another port',
    config: port(2200),
    user: '[node1.example.org]:2201 {ed25519}',
    ssh: 'unknown',
  },
  { name: 'is known with port 22 in brackets', user: '[node1.example.org]:22 {ed25519}', ssh: 'unknown' },
  {
    name: 'is hashed with its port',
    config: port(2200),
    user: '{hash [node1.example.org]:2200} {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'has changed at its port, and is known without it',
    config: port(2200),
    user: '[node1.example.org]:2200 {stranger}\nnode1.example.org {ed25519}',
    ssh: 'changed',
  },
  {
    name: 'has another key without its port',
    config: port(2200),
    user: 'node1.example.org {stranger}',
    ssh: 'unknown',
  },
  {
    name: 'is revoked without its port',
    config: port(2200),
    user: '@revoked node1.example.org {ed25519}',
    ssh: 'revoked',
  },
  {
    name: 'is known by a wildcard for ports',
    config: port(2200),
    user: '[*.example.org]:* {ed25519}',
    ssh: 'accepted',
  },
  { name: 'is known by an IP address', config: ['HostName 10.1.2.3'], user: '10.1.2.3 {ed25519}', ssh: 'accepted' },
  {
    name: 'is known by a wildcard for addresses',
    config: ['HostName 10.1.2.3'],
    user: '10.1.2.* {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'is known by a network, which known_hosts cannot name',
    config: ['HostName 10.1.2.3'],
    user: '10.1.2.0/24 {ed25519}',
    ssh: 'unknown',
  },
  { name: 'has an IPv6 address', config: ['HostName fd00::1'], user: 'fd00::1 {ed25519}', ssh: 'accepted' },
  {
    name: 'has an IPv6 address and a port',
    config: ['HostName fd00::1', ...port(2200)],
    user: '[fd00::1]:2200 {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'goes by its name though CheckHostIP is set, behind a proxy',
    config: ['CheckHostIP yes'],
    user: 'node1.example.org {ed25519}',
    ssh: 'accepted',
  },
]

const LINES: readonly Case[] = [
  {
    name: 'stands behind comments and empty lines',
    user: '# one\n\n  # two\n\t\n  node1.example.org {ed25519}',
    ssh: 'accepted',
  },
  { name: 'is separated by tabs', user: '\tnode1.example.org\t{ed25519}\tcomment', ssh: 'accepted' },
  { name: 'is in a file with CRLF', user: 'a {stranger}\r\nnode1.example.org {ed25519}\r\n', ssh: 'accepted' },
  {
    name: 'is in a file with a byte order mark',
    user: '\u00ef\u00bb\u00bfnode1.example.org {ed25519}',
    ssh: 'unknown',
  },
  { name: 'is behind a very long line', user: 'x {long 300000}\nnode1.example.org {ed25519}', ssh: 'accepted' },
  { name: 'has a very long comment', user: 'node1.example.org {ed25519} {long 300000}', ssh: 'accepted' },
  {
    name: 'is behind broken lines',
    user: 'node1.example.org\nnode1.example.org ssh-ed25519\nnode1.example.org {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'has only a line without a key',
    config: accepts(),
    user: 'node1.example.org ssh-ed25519',
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
  {
    name: 'has only a key that was cut',
    config: accepts(),
    user: 'node1.example.org ssh-ed25519 {cut stranger}',
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
  {
    name: 'has only a key of a type that differs from what it says',
    config: accepts(),
    user: 'node1.example.org ssh-rsa {blob stranger}',
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
  {
    name: 'has only a key of an unknown type',
    config: accepts(),
    user: 'node1.example.org ssh-foo AAAAB3NzaC1mb28AAAAEAAAAAA==',
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
  {
    name: 'has only a key of SSH 1',
    config: accepts(),
    user: 'node1.example.org 1024 65537 123456789',
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
  {
    name: 'has only a key that is not base64',
    config: accepts(),
    user: 'node1.example.org ssh-ed25519 ###',
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
  {
    name: 'has its key without padding',
    user: 'node1.example.org ecdsa-sha2-nistp256 {unpadded ecdsa}',
    ssh: 'unknown',
  },
  {
    name: 'has an unknown marker',
    config: accepts(),
    user: '@trusted node1.example.org {stranger}',
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
  {
    name: 'has a marker and nothing else',
    config: accepts(),
    user: '@revoked\n@cert-authority\n',
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
  { name: 'has NUL bytes in a line before', user: 'a\u0000b {stranger}\nnode1.example.org {ed25519}', ssh: 'accepted' },
  {
    name: 'has the last line without a line feed',
    config: accepts(),
    user: 'a {stranger}',
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
]

const KEYS: readonly Case[] = [
  { name: 'has only its ECDSA key known', user: 'node1.example.org {ecdsa}', ssh: 'accepted' },
  { name: 'has only its RSA key known', user: 'node1.example.org {rsa}', ssh: 'accepted' },
  {
    name: 'has all keys known',
    user: 'node1.example.org {rsa}\nnode1.example.org {ecdsa}\nnode1.example.org {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'has several keys of a type known',
    user: 'node1.example.org {stranger}\nnode1.example.org {ed25519}',
    ssh: 'accepted',
  },
  { name: 'has another key', user: 'node1.example.org {stranger}', ssh: 'changed' },
  {
    name: 'has another key of a type that it lacks',
    server: 'ed25519',
    user: 'node1.example.org {stranger-rsa}',
    ssh: 'changed',
  },
  {
    name: 'has an old RSA key before its Ed25519 key',
    user: 'node1.example.org {stranger-rsa}\nnode1.example.org {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'has an old RSA key before its ECDSA key',
    user: 'node1.example.org {stranger-rsa}\nnode1.example.org {ecdsa}',
    ssh: 'accepted',
  },
  {
    name: 'has an old ECDSA key before its RSA key',
    user: 'node1.example.org {stranger-ecdsa}\nnode1.example.org {rsa}',
    ssh: 'changed',
  },
  {
    name: 'has an old Ed25519 key before its RSA key',
    user: 'node1.example.org {stranger}\nnode1.example.org {rsa}',
    ssh: 'changed',
  },
  { name: 'has another key with accept-new', config: accepts(), user: 'node1.example.org {stranger}', ssh: 'changed' },
  { name: 'has another key with ask', config: accepts('ask'), user: 'node1.example.org {stranger}', ssh: 'changed' },
  {
    name: 'has another key with no',
    config: accepts('no'),
    user: 'node1.example.org {stranger}',
    ssh: 'accepted',
    muster: { verdict: 'changed', documented: 'also with StrictHostKeyChecking no' },
  },
  { name: 'is new with yes', ssh: 'unknown' },
  { name: 'is new with ask and nobody to ask', config: accepts('ask'), ssh: 'unknown' },
  {
    name: 'is new with accept-new',
    config: accepts(),
    ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user',
  },
  { name: 'is new with no', config: accepts('no'), ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user' },
  { name: 'is new with off', config: accepts('off'), ssh: 'accepted, recorded node1.example.org ssh-ed25519 in user' },
  {
    name: 'is new and to be hashed',
    config: [...accepts(), 'HashKnownHosts yes'],
    ssh: 'accepted, recorded hashed ssh-ed25519 in user',
  },
  {
    name: 'is new under an alias',
    config: [...accepts(), ...alias('Blade')],
    ssh: 'accepted, recorded blade ssh-ed25519 in user',
  },
  {
    name: 'is new at a port',
    config: [...accepts(), ...port(2200)],
    ssh: 'accepted, recorded [node1.example.org]:2200 ssh-ed25519 in user',
  },
  {
    name: 'is new with an ECDSA key only',
    server: 'ecdsa',
    config: accepts(),
    ssh: 'accepted, recorded node1.example.org ecdsa-sha2-nistp256 in user',
  },
  {
    name: 'is new with an RSA key only',
    server: 'rsa',
    config: accepts(),
    ssh: 'accepted, recorded node1.example.org ssh-rsa in user',
  },
  { name: 'is known, so nothing is written', config: accepts(), user: 'node1.example.org {ed25519}', ssh: 'accepted' },
  {
    name: 'is known and sends its other keys',
    config: ['UpdateHostKeys no'],
    user: 'node1.example.org {ed25519}',
    ssh: 'accepted',
  },
]

const REVOKED: readonly Case[] = [
  { name: 'shows a revoked key', user: '@revoked node1.example.org {ed25519}', ssh: 'revoked' },
  { name: 'shows a key that is revoked for all', user: '@revoked * {ed25519}', ssh: 'revoked' },
  {
    name: 'shows a key that is revoked for another host',
    user: '@revoked other.example.org {ed25519}\nnode1.example.org {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'shows a key that is known and revoked',
    server: 'ed25519',
    user: 'node1.example.org {ed25519}\n@revoked * {ed25519}',
    ssh: 'revoked',
  },
  {
    name: 'has a revoked key and a good one',
    user: '@revoked * {ed25519}\nnode1.example.org {ecdsa}',
    ssh: 'accepted',
  },
  {
    name: 'has a known key revoked, and another one known',
    user: 'node1.example.org {ed25519}\nnode1.example.org {rsa}\n@revoked * {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'has a revoked key and is new with accept-new',
    config: accepts(),
    user: '@revoked * {ed25519}',
    ssh: 'revoked',
  },
  {
    name: 'shows a revoked key with no',
    server: 'ed25519',
    config: accepts('no'),
    user: '@revoked * {ed25519}',
    ssh: 'accepted',
    muster: { verdict: 'revoked', documented: 'also with StrictHostKeyChecking no' },
  },
  {
    name: 'shows a key that is revoked in the global file',
    user: 'node1.example.org {ed25519}',
    global: '@revoked * {ed25519}',
    ssh: 'revoked',
  },
  {
    name: 'shows a key that is revoked by a hash',
    user: '@revoked {hash node1.example.org} {ed25519}',
    ssh: 'revoked',
  },
  {
    name: 'shows a good key where another is revoked',
    user: '@revoked * {stranger}\nnode1.example.org {ed25519}',
    ssh: 'accepted',
  },
]

export const KNOWN_HOSTS_CASES: readonly Case[] = [
  ...NAMES,
  ...LINES,
  ...KEYS,
  ...REVOKED,
  ...FILE_CASES,
  ...CERTIFICATE_CASES,
]
