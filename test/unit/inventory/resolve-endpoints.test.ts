import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MusterError } from '../../../src/base/errors.ts'
import type { Endpoint } from '../../../src/inventory/host.ts'
import { inventoryFromTarget } from '../../../src/inventory/inventory.ts'
import { type EndpointOptions, resolveEndpoints } from '../../../src/inventory/resolve-endpoints.ts'
import { createLibrarySource } from '../../../src/inventory/ssh-config/library-source.ts'
import { findProgram } from '../../../src/inventory/ssh-config/openssh-source.ts'
import { readInventory } from '../../support/hosts-yaml.ts'
import { ann, createRecordedSource, FIXTURES } from './ssh-config/recorded-source.ts'

const existing = new Set(['/home/ann/.ssh/id_ed25519'])
const noFiles = { exists: (path: string) => existing.has(path), read: () => undefined }
const recorded = (): EndpointOptions => ({ env: {}, localUser: ann, source: createRecordedSource(), files: noFiles })

async function endpointsOf(target: string, options: Partial<EndpointOptions> = {}): Promise<readonly Endpoint[]> {
  const inventory = inventoryFromTarget(target)
  return resolveEndpoints(inventory, inventory.hosts, { ...recorded(), ...options })
}

async function endpointOf(target: string, options: Partial<EndpointOptions> = {}): Promise<Endpoint> {
  const [endpoint] = await endpointsOf(target, options)
  if (!endpoint) throw new Error('no endpoint')
  return endpoint
}

async function endpointsFrom(yaml: string, options: Partial<EndpointOptions> = {}): Promise<readonly Endpoint[]> {
  const inventory = readInventory(yaml, '/srv/cluster/hosts.yaml')
  return resolveEndpoints(inventory, inventory.hosts, { ...recorded(), ...options })
}

const failureOf = async (action: Promise<unknown>): Promise<MusterError> => {
  const error: unknown = await action.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof MusterError) return error
  throw new Error(`not refused: ${String(error)}`)
}

describe('an endpoint by ssh_config alone', () => {
  test("has Muster's defaults if nothing is set", async () => {
    expect(await endpointOf('plain')).toEqual({
      host: 'plain',
      number: 1,
      transport: 'ssh2',
      address: 'plain.example.org',
      port: 22,
      user: 'ann',
      identityFiles: ['/home/ann/.ssh/id_ed25519'],
      identitiesOnly: false,
      forwardAgent: false,
      jump: [],
      knownHostsFiles: ['/home/ann/.ssh/known_hosts', '/home/ann/.ssh/known_hosts2'],
      globalKnownHostsFiles: ['/etc/ssh/ssh_known_hosts', '/etc/ssh/ssh_known_hosts2'],
      strictHostKeyChecking: 'ask',
      hashKnownHosts: false,
      connectTimeoutMs: 10_000,
      keepAliveIntervalMs: 5_000,
      keepAliveMaxMissed: 3,
      authentications: ['publickey', 'keyboard-interactive', 'password'],
    } satisfies Endpoint)
  })

  test('uses all settings, with tokens and ~ expanded', async () => {
    const files = { ...noFiles, exists: (path: string) => path.startsWith('/home/ann/.ssh/') }
    const { jump, ...endpoint } = await endpointOf('chained', { files })
    expect(endpoint).toEqual({
      host: 'chained',
      number: 1,
      transport: 'ssh2',
      address: '10.0.0.7',
      port: 2207,
      user: 'bob',
      identityFiles: ['/home/ann/.ssh/bob_10.0.0.7', '/home/ann/.ssh/with space'],
      identitiesOnly: true,
      agentSocket: '/home/ann/.ssh/agent.sock',
      forwardAgent: false,
      knownHostsFiles: ['/home/ann/.ssh/known_chained', '/srv/with space/known'],
      globalKnownHostsFiles: ['/etc/ssh/ssh_known_hosts', '/etc/ssh/ssh_known_hosts2'],
      hostKeyAlias: 'seven',
      strictHostKeyChecking: 'accept-new',
      hashKnownHosts: true,
      connectTimeoutMs: 120_000,
      keepAliveIntervalMs: 60_000,
      keepAliveMaxMissed: 5,
      authentications: ['publickey', 'keyboard-interactive', 'password'],
    })
    expect(jump.map(({ user, address, port }) => `${user}@${address}:${port}`)).toEqual([
      'ann@outer:22',
      'ann@gate:2200',
      'ann@inner:22',
    ])
  })

  test('asks in one round per hop, and about each host once', async () => {
    const source = createRecordedSource()
    await endpointsOf('chained,plain,chained:2207', { source })
    expect(source.rounds.map((round) => round.map(({ alias }) => alias))).toEqual([
      ['chained', 'plain', 'chained'],
      ['gate', 'inner'],
      ['outer'],
    ])
  })

  test('expands the proxy command, and passes on environment, command and order of methods', async () => {
    const endpoint = await endpointOf('command', { env: { LC_ALL: 'C.UTF-8', LANG: 'C', SSH_AUTH_SOCK: '/run/agent' } })
    expect(endpoint).toMatchObject({
      proxyCommand: 'nc -X connect command:22 as ann for command at 100%',
      forwardAgent: true,
      agentSocket: '/run/agent',
      environment: { LC_ALL: 'C.UTF-8', ROLE: 'worker' },
      shell: 'tmux attach',
      authentications: ['password', 'publickey'],
    })
  })

  test('distinguishes hosts with one address and several ports, and asks for the alias', async () => {
    const endpoints = await endpointsOf('plain:2201,plain:2202')
    expect(endpoints.map(({ host, alias, address, port }) => [host, alias, address, port])).toEqual([
      ['plain:2201', 'plain', 'plain.example.org', 2201],
      ['plain:2202', 'plain', 'plain.example.org', 2202],
    ])
  })
})

describe('the system’s ssh is needed for', () => {
  test.each([
    ['token', 'its key is on a token (PKCS11Provider /usr/lib/opensc-pkcs11.so)'],
    ['ticket', 'it allows only gssapi-with-mic that the built-in transport does not know'],
  ])('%s', async (host, reason) => {
    expect(await endpointOf(host)).toMatchObject({ transport: 'openssh', needsOpenSsh: reason })
  })

  test('a certificate, if it exists', async () => {
    expect(await endpointOf('certified')).toMatchObject({ transport: 'ssh2' })
    const read = (path: string) => (path === '/home/ann/.ssh/ann-cert.pub' ? Buffer.from('') : undefined)
    expect(await endpointOf('certified', { files: { ...noFiles, read } })).toMatchObject({
      needsOpenSsh: 'it logs in with a certificate (/home/ann/.ssh/ann-cert.pub)',
    })
  })

  test('a security key, unless there is another key', async () => {
    const read = (path: string) =>
      path.endsWith('_sk.pub') ? Buffer.from('sk-ssh-ed25519@openssh.com AAAA') : undefined
    const only = { exists: (path: string) => path.endsWith('/id_ed25519_sk'), read }
    const both = { exists: (path: string) => /id_ed25519(_sk)?$/.test(path), read }
    expect((await endpointOf('plain', { files: only })).needsOpenSsh).toContain('security key')
    expect((await endpointOf('plain', { files: both })).needsOpenSsh).toBeUndefined()
  })

  test('a host behind such a jump host', async () => {
    const [endpoint] = await endpointsFrom('hosts: { a: { jump: token } }')
    expect(endpoint?.needsOpenSsh).toMatch(/^its jump host token: its key is on a token/)
  })

  test('unless the user says otherwise', async () => {
    const [endpoint] = await endpointsFrom('hosts: { token: { transport: ssh2 } }')
    expect(endpoint?.transport).toBe('ssh2')
  })
})

describe('hosts.yaml over ssh_config', () => {
  test('overrides what it sets, and leaves the rest', async () => {
    const [endpoint] = await endpointsFrom(
      'hosts: { chained: { address: 10.9.9.9, user: dora, jump: none, forward_agent: true, shell: fish } }',
    )
    expect(endpoint).toMatchObject({
      address: '10.9.9.9',
      port: 2207,
      user: 'dora',
      jump: [],
      forwardAgent: true,
      shell: 'fish',
      hostKeyAlias: 'seven',
    })
  })

  test('a second entry for a name of ssh_config is reached as the first one, with its own user', async () => {
    const [first, second] = await endpointsFrom(
      'hosts: { chained: , root-chained: { ssh_alias: chained, user: root } }',
    )
    expect(second).toEqual({ ...first, host: 'root-chained', number: 2, alias: 'chained', user: 'root' })
    expect(second).toMatchObject({ address: '10.0.0.7', port: 2207, hostKeyAlias: 'seven' })
    expect(second?.jump).not.toEqual([])
  })

  test('jump hosts of the inventory keep their own route', async () => {
    const endpoints = await endpointsFrom(`hosts:
  far: { jump: [middle, "bob@last:99"] }
  middle: { address: 10.0.0.2, port: 1822, jump: near }
  near: { address: 10.0.0.1, user: root }`)
    expect(endpoints[0]?.jump.map(({ host, user, address, port, jump }) => [host, user, address, port, jump])).toEqual([
      ['near', 'root', '10.0.0.1', 22, []],
      ['middle', 'ann', '10.0.0.2', 1822, []],
      ['last', 'bob', 'last', 99, []],
    ])
  })

  test('a later hop drops its own route, because it is reached through the one before', async () => {
    const [endpoint] = await endpointsFrom('hosts: { far: { jump: [plain, command] } }')
    expect(endpoint?.jump.map(({ host, proxyCommand }) => [host, proxyCommand])).toEqual([
      ['plain', undefined],
      ['command', undefined],
    ])
  })

  test('the first hop keeps its proxy command', async () => {
    const [endpoint] = await endpointsFrom('hosts: { far: { jump: command } }')
    expect(endpoint?.jump[0]?.proxyCommand).toContain('nc -X connect command:22')
  })

  test('its key files are kept although they are missing, relative to the file', async () => {
    const [endpoint] = await endpointsFrom('hosts: { a: { identity_file: [keys/one, ~/.ssh/two] } }')
    expect(endpoint?.identityFiles).toEqual(['/srv/cluster/keys/one', '/home/ann/.ssh/two'])
  })

  test('a local host needs no ssh -G', async () => {
    const source = createRecordedSource()
    const [endpoint] = await endpointsFrom('hosts: { here: { transport: local, shell: fish } }', { source })
    expect(endpoint).toMatchObject({
      host: 'here',
      transport: 'local',
      address: 'localhost',
      user: 'ann',
      shell: 'fish',
    })
    expect(source.rounds).toEqual([])
  })

  test('options of the command line', async () => {
    const [silent, spoken] = await endpointsFrom('hosts: { chained: , plain: { forward_agent: false } }', {
      connectTimeoutMs: 3000,
      forwardAgent: true,
    })
    expect([silent?.connectTimeoutMs, silent?.forwardAgent, spoken?.forwardAgent]).toEqual([3000, true, false])
  })
})

describe('impossible routes', () => {
  test('a circle in ssh_config, for all hosts in it', async () => {
    const error = await failureOf(endpointsOf('circle-a,plain'))
    expect(error.code).toBe('configuration')
    expect(error.message).toBe('circle-a: jump hosts form a loop: circle-a → circle-b → circle-a')
  })

  test('a jump host without SSH', async () => {
    const error = await failureOf(endpointsFrom('hosts: { a: { jump: b }, b: { transport: local } }'))
    expect(error.message).toBe('a: jump host b has transport: local')
  })

  test('an error of ssh about its configuration, once for all hosts', async () => {
    const source = {
      ask: async (questions: readonly unknown[]) =>
        questions.map(() => ({ ok: false as const, reason: 'config line 3: bad' })),
    }
    const error = await failureOf(endpointsOf('m[1-3]', { source }))
    expect(error.message).toBe('m[1-3]: config line 3: bad')
  })
})

describe('ssh itself and the library', () => {
  const ALIASES = 'plain,chained,gate,command,token,ticket,certified,included,carl@matched,unknown,chained:99'
  let directory = ''
  let config = ''
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-ssh-config-'))
    config = join(directory, 'config')
    writeFileSync(config, readFileSync(`${FIXTURES}config`, 'utf8').replace('conf.d', `${FIXTURES}conf.d`))
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  test('the library gives the same endpoints as the recorded answers of ssh', async () => {
    const source = createLibrarySource({ configFile: config, localUser: ann })
    const aliases = ALIASES.replace('carl@matched,', '')
    expect(await endpointsOf(aliases, { source })).toEqual(await endpointsOf(aliases))
  })

  test('the library follows Include and Match', async () => {
    const source = createLibrarySource({ configFile: config, localUser: ann })
    const [included, matched] = await endpointsOf('included,carl@matched', { source })
    expect([included?.port, matched?.port, matched?.user]).toEqual([2400, 2300, 'carl'])
  })

  test.skipIf(findProgram('ssh', process.env.PATH) === undefined)(
    'the installed ssh agrees with the library',
    async () => {
      const { username, uid, homedir } = userInfo()
      const localUser = { name: username, uid, home: homedir, hostName: 'here' }
      const options = { localUser, sshConfigFile: config, env: { PATH: process.env.PATH }, files: noFiles }
      const inventory = inventoryFromTarget(ALIASES)
      const bySsh = await resolveEndpoints(inventory, inventory.hosts, options)
      const source = createLibrarySource({ configFile: config, localUser })
      expect(bySsh).toEqual(await resolveEndpoints(inventory, inventory.hosts, { ...options, source }))
      expect(bySsh.map(({ port }) => port)).toEqual([22, 2207, 22, 22, 22, 22, 22, 2400, 2300, 22, 99])
    },
  )

  test.skipIf(findProgram('ssh', process.env.PATH) === undefined)(
    'a mistake in ssh_config is reported with file and line',
    async () => {
      const broken = join(directory, 'broken')
      writeFileSync(broken, 'Host *\n  Prot 22\n')
      const inventory = inventoryFromTarget('m[1-3]')
      const options = { env: { PATH: process.env.PATH }, sshConfigFile: broken }
      const error = await failureOf(resolveEndpoints(inventory, inventory.hosts, options))
      expect(error.message).toMatch(/^m\[1-3\]: .*line 2: Bad configuration option: prot/)
    },
  )

  test.skipIf(findProgram('ssh', process.env.PATH) === undefined)(
    'values of hosts.yaml reach ssh unchanged',
    async () => {
      const inventory = readInventory(
        'hosts: { a: { address: "fe80::1%%eth0", port: 2222, user: ann, identity_file: "~/my key" }, b: }',
        join(directory, 'hosts.yaml'),
      )
      const options = { env: { PATH: process.env.PATH }, sshConfigFile: '/dev/null', localUser: ann }
      const [a] = await resolveEndpoints(inventory, inventory.hosts, options)
      expect(a).toMatchObject({ address: 'fe80::1%eth0', port: 2222, user: 'ann', identityFiles: ['/home/ann/my key'] })
    },
  )
})
