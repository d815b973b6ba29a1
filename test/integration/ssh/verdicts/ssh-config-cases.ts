/** What ssh_config may say about the way to a host and the algorithms there. */
import type { Case } from './judges.ts'

const KNOWN = 'node1.example.org {ed25519}\nnode1.example.org {ecdsa}\nnode1.example.org {rsa}'
const accepts = 'StrictHostKeyChecking accept-new'

const BLOCKS: readonly Case[] = [
  {
    name: 'is in a Host block',
    config: ['Host node1', 'HostKeyAlias a', 'Host *'],
    user: 'a {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'is excluded from a Host block',
    config: ['Host node? !node1', 'HostKeyAlias a', 'Host *'],
    user: KNOWN,
    ssh: 'accepted',
  },
  {
    name: 'takes the first value of several blocks',
    config: ['Host node*', 'HostKeyAlias a', 'Host node1', 'HostKeyAlias b', 'Host *'],
    user: 'a {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'is in a Match block by its typed name',
    config: ['Match originalhost node1', 'HostKeyAlias a', 'Host *'],
    user: 'a {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'is in a Match block by its real name',
    config: ['HostName node1.example.org', 'Match host *.example.org', 'HostKeyAlias a', 'Host *'],
    user: 'a {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'is in a Match block with a command',
    config: ['Match exec "test %n = node1"', 'HostKeyAlias a', 'Host *'],
    user: 'a {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'is in a Match block of the final pass',
    config: ['Match final host node1.example.org', 'HostKeyAlias a', 'Host *'],
    user: 'a {ed25519}',
    ssh: 'accepted',
  },
  {
    name: 'has an included file',
    config: ['Include DIR/more', 'Host *'],
    files: { more: 'Host node1\nHostKeyAlias a\n' },
    user: 'a {ed25519}',
    ssh: 'accepted',
  },
  { name: 'has tokens in its name', config: ['HostName %h.example.org'], user: KNOWN, ssh: 'accepted' },
  {
    name: 'has settings with equals signs and quotes',
    config: ['HostKeyAlias="a"', 'StrictHostKeyChecking = yes'],
    user: 'a {ed25519}',
    ssh: 'accepted',
  },
]

const HOST_KEYS: readonly Case[] = [
  {
    name: 'may show an RSA key only',
    config: [accepts, 'HostKeyAlgorithms rsa-sha2-512'],
    ssh: 'accepted, recorded node1.example.org ssh-rsa in user',
  },
  {
    name: 'may show an ECDSA key only, and its Ed25519 key is known',
    config: ['HostKeyAlgorithms ecdsa-sha2-nistp256'],
    user: 'node1.example.org {ed25519}',
    ssh: 'changed',
  },
  {
    name: 'may show keys that it does not have',
    server: 'ed25519',
    config: ['HostKeyAlgorithms rsa-sha2-256'],
    user: KNOWN,
    ssh: 'no common host key algorithm',
  },
  {
    name: 'may not show an Ed25519 key',
    server: 'ed25519',
    config: ['HostKeyAlgorithms -ssh-ed25519*'],
    user: KNOWN,
    ssh: 'no common host key algorithm',
  },
  {
    name: 'has Ed25519 taken away and is new',
    config: [accepts, 'HostKeyAlgorithms -ssh-ed25519*,ecdsa*'],
    ssh: 'accepted, recorded node1.example.org ssh-rsa in user',
  },
  {
    name: 'has RSA put first and is new',
    config: [accepts, 'HostKeyAlgorithms ^rsa-sha2-512'],
    ssh: 'accepted, recorded node1.example.org ssh-rsa in user',
  },
  {
    name: 'has RSA put first, and its Ed25519 key is known',
    config: ['HostKeyAlgorithms ^rsa-sha2-512'],
    user: 'node1.example.org {ed25519}',
    ssh: 'changed',
  },
  {
    name: 'has an RSA key that is shorter than RequiredRSASize, and that is known',
    server: 'rsa',
    config: ['RequiredRSASize 3072'],
    user: KNOWN,
    ssh: 'RSA key too short',
  },
  {
    name: 'has an RSA key as long as RequiredRSASize',
    server: 'rsa',
    config: ['RequiredRSASize 2048'],
    user: KNOWN,
    ssh: 'accepted',
  },
  {
    name: 'has an Ed25519 key, whatever RequiredRSASize is',
    config: ['RequiredRSASize 16384'],
    user: KNOWN,
    ssh: 'accepted',
  },
  {
    name: 'has SHA-1 added, and its RSA key is known',
    config: ['HostKeyAlgorithms +ssh-rsa'],
    user: 'node1.example.org {rsa}',
    ssh: 'accepted',
  },
  { name: 'signs with SHA-1 alone', server: 'sha-1', user: KNOWN, ssh: 'no common host key algorithm' },
  {
    name: 'signs with SHA-1 alone, which is allowed',
    server: 'sha-1',
    config: ['HostKeyAlgorithms +ssh-rsa'],
    user: KNOWN,
    ssh: 'accepted',
  },
  {
    name: 'has ECDSA before Ed25519 and is new',
    config: [accepts, 'HostKeyAlgorithms ecdsa-sha2-nistp256,ssh-ed25519'],
    ssh: 'accepted, recorded node1.example.org ecdsa-sha2-nistp256 in user',
  },
  {
    name: 'may show certificates only',
    server: 'certified',
    config: ['HostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com'],
    user: '@cert-authority * {authority}',
    transport: 'openssh',
    ssh: 'accepted',
  },
  {
    name: 'may show certificates only and no authority is known',
    server: 'certified',
    config: ['HostKeyAlgorithms ssh-ed25519-cert-v01@openssh.com'],
    user: KNOWN,
    transport: 'openssh',
    ssh: 'accepted',
  },
]

const EXCHANGES: readonly Case[] = [
  {
    name: 'may exchange keys with the only group that it knows',
    server: 'group 16',
    config: ['KexAlgorithms diffie-hellman-group16-sha512'],
    user: KNOWN,
    ssh: 'accepted',
  },
  {
    name: 'may not exchange keys as it would',
    server: 'group 16',
    config: ['KexAlgorithms curve25519-sha256'],
    user: KNOWN,
    ssh: 'no common key exchange',
  },
  {
    name: 'has its key exchange taken away',
    server: 'group 16',
    config: ['KexAlgorithms -diffie-hellman-*'],
    user: KNOWN,
    ssh: 'no common key exchange',
  },
  { name: 'has group exchange alone', server: 'group exchange', user: KNOWN, ssh: 'accepted' },
  {
    name: 'has group exchange alone, and that is asked for',
    server: 'group exchange',
    config: ['KexAlgorithms diffie-hellman-group-exchange-sha256'],
    user: KNOWN,
    ssh: 'accepted',
  },
  {
    name: 'has group exchange alone, which is taken away',
    server: 'group exchange',
    config: ['KexAlgorithms -diffie-hellman-group-exchange-*'],
    user: KNOWN,
    ssh: 'no common key exchange',
  },
  {
    name: 'may exchange keys with NTRU Prime only',
    server: 'post-quantum',
    config: ['KexAlgorithms sntrup761x25519-sha512@openssh.com'],
    user: KNOWN,
    transport: 'openssh',
    ssh: 'accepted',
  },
  {
    name: 'has group 16 put first',
    config: ['KexAlgorithms ^diffie-hellman-group16-sha512'],
    user: KNOWN,
    ssh: 'accepted',
  },
  {
    name: 'may use a cipher and a MAC that it has',
    server: 'aes256-ctr',
    config: ['Ciphers aes256-ctr', 'MACs hmac-sha2-512'],
    user: KNOWN,
    ssh: 'accepted',
  },
  {
    name: 'may not use its cipher',
    server: 'aes256-ctr',
    config: ['Ciphers aes128-ctr'],
    user: KNOWN,
    ssh: 'no common algorithm',
  },
  {
    name: 'may not use its MAC',
    server: 'aes256-ctr',
    config: ['MACs hmac-sha2-256'],
    user: KNOWN,
    ssh: 'no common algorithm',
  },
  {
    name: 'may use a cipher only that the built-in transport lacks',
    config: ['Ciphers aes192-ctr'],
    user: KNOWN,
    transport: 'openssh',
    ssh: 'accepted',
  },
]

export const SSH_CONFIG_CASES: readonly Case[] = [...BLOCKS, ...HOST_KEYS, ...EXCHANGES]
