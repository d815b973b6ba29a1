import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  failureBehindJump,
  failureFromOutput,
  lossFromOutput,
  parseAskpassQuestion,
  phaseOf,
} from '../../../src/ssh/openssh/open-master.ts'
import { clientArguments, masterArguments } from '../../../src/ssh/openssh/ssh-arguments.ts'
import { anyCharacter } from '../../support/any-character.ts'
import { endpointOf } from './fake-transport.ts'

describe('a question of ssh', () => {
  const newKey = [
    "The authenticity of host '[127.0.0.1]:2222 ([127.0.0.1]:2222)' can't be established.",
    'ED25519 key fingerprint is SHA256:Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE.',
    'This key is not known by any other names.',
    'Are you sure you want to continue connecting (yes/no/[fingerprint])? ',
  ].join('\n')

  it('about a new host key names the key as the review shows it', () => {
    expect(parseAskpassQuestion('m1', newKey, undefined)).toEqual({
      kind: 'host-key',
      key: {
        host: 'm1',
        lookupName: '[127.0.0.1]:2222',
        algorithm: 'ED25519',
        fingerprint: 'SHA256:Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE',
      },
    })
  })

  it('about an unreadable host key is not answered', () => {
    expect(parseAskpassQuestion('m1', 'Are you sure (yes/no)? ', undefined)).toEqual({ kind: 'refuse' })
    expect(parseAskpassQuestion('m1', "Please type 'yes', 'no' or the fingerprint: ", undefined)).toEqual({
      kind: 'refuse',
    })
  })

  it.each([
    ["Enter passphrase for key '/home/u/.ssh/id a': ", { kind: 'passphrase', keyFile: '/home/u/.ssh/id a' }],
    ["root@10.0.0.1's password: ", { kind: 'password', user: 'root@10.0.0.1' }],
    ['(root@10.0.0.1) Password: ', { kind: 'prompt', text: '(root@10.0.0.1) Password: ', isEchoed: false }],
    [
      'Enter PIN for ED25519-SK key /k: ',
      { kind: 'prompt', text: 'Enter PIN for ED25519-SK key /k: ', isEchoed: false },
    ],
  ])('is recognised by its words: %s', (text, question) => {
    expect(parseAskpassQuestion('m1', text, undefined)).toEqual(question)
  })

  it.each([
    '(root@m1) Are you sure you want to go on (yes/no)? ',
    `(root@m1) \n${newKey}`,
    "(root@m1) Enter passphrase for key '/root/.ssh/id': ",
    "(root@m1) root@m2's password: ",
  ])("that a server words like one of ssh is still the server's: %s", (text) => {
    expect(parseAskpassQuestion('m1', text, undefined)).toMatchObject({ kind: 'prompt', text })
  })

  it('that only asks to touch a key needs no answer', () => {
    expect(parseAskpassQuestion('m1', 'Confirm user presence for key', 'none').kind).toBe('notice')
  })

  it('is never answered with yes by accident, whatever a server writes', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const question = parseAskpassQuestion('m1', text, undefined)
        if (question.kind === 'host-key') expect(question.key.fingerprint).not.toBe('')
      }),
    )
  })
})

describe('the messages of ssh during a login', () => {
  it('show the phase', () => {
    expect(phaseOf('debug1: Connecting to 127.0.0.1 [127.0.0.1] port 22.')).toBe('tcp')
    expect(phaseOf('debug1: Next authentication method: publickey')).toBe('authentication')
    expect(phaseOf('Connecting to nobody')).toBeUndefined()
  })

  it.each([
    ['ssh: Could not resolve hostname nowhere: Name or service not known', 'unreachable', 'name'],
    ['ssh: connect to host 127.0.0.1 port 1: Connection refused', 'unreachable', 'tcp'],
    ['kex_exchange_identification: Connection closed by remote host', 'unreachable', 'banner'],
    ['root@127.0.0.1: Permission denied (publickey).', 'authentication', 'authentication'],
    ['Host key verification failed.', 'host-key', 'host-key'],
    ['/home/u/.ssh/config: line 3: Bad configuration option: nonsense', 'configuration', 'name'],
  ])('gives the reason of a failure: %s', (line, kind, phase) => {
    const failure = failureFromOutput(['debug1: Reading configuration data', line], phase === 'tcp' ? 'tcp' : 'name')
    expect(failure).toMatchObject({ kind, phase })
    expect(failure.reason.length).toBeGreaterThan(10)
  })

  it('name a changed key before the refusal that follows', () => {
    const lines = [
      '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @',
      'IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!',
      'Host key verification failed.',
    ]
    expect(failureFromOutput(lines, 'host-key').reason).toBe('the host key is not the one in known_hosts')
  })

  const lookAlikes = [
    'WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!',
    '@ REVOKED HOST KEY @',
    'Host key verification failed.',
    'Idle sessions are timed out by the proxy. Permission denied to strangers.',
  ]

  it.each(lookAlikes)('are not mistaken for a banner that looks like them: %s', (banner) => {
    const denied = 'root@m1: Permission denied (publickey).'
    expect(failureFromOutput([banner, denied], 'authentication')).toMatchObject({
      kind: 'authentication',
      reason: denied.slice(0, -1),
    })
    const closed = 'Connection closed by 10.0.0.1 port 22'
    expect(failureFromOutput([banner, closed], 'authentication')).toMatchObject({ kind: 'unreachable', reason: closed })
    expect(failureFromOutput([banner], 'authentication').kind).not.toBe('host-key')
  })

  it('are not those of the proxy command', () => {
    const end = [
      'kex_exchange_identification: Connection closed by remote host',
      'Connection closed by UNKNOWN port 65535',
    ]
    expect(failureFromOutput([lookAlikes[0]!, 'Host key verification failed.', ...end], 'proxy')).toEqual({
      kind: 'unreachable',
      phase: 'proxy',
      reason: 'proxy command: Host key verification failed.',
    })
    const unknown = 'No ED25519 host key is known for m1 and you have requested strict checking.'
    const lines = [lookAlikes[1]!, 'debug1: Server host key: ssh-ed25519 x', unknown, 'Host key verification failed.']
    expect(failureFromOutput(lines, 'host-key').reason).toBe(unknown.slice(0, -1))
  })

  it('name the jump host that is in trouble, the first on the way', () => {
    const endpoint = { ...endpointOf('m1'), jump: [endpointOf('a'), endpointOf('b')] }
    const proxyEnd = 'Connection closed by UNKNOWN port 65535\r\n'
    const changed = '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\nHost key verification failed.\r\n'
    expect(failureBehindJump(endpoint, [changed, proxyEnd])).toMatchObject({
      kind: 'host-key',
      phase: 'proxy',
      reason: expect.stringMatching(/via a, b: jump host a: the host key is not the one in known_hosts$/),
    })
    const refused = 'channel 0: open failed: connect failed: Connection refused\r\nstdio forwarding failed\r\n'
    expect(failureBehindJump(endpoint, ['Warning: Permanently added a\r\n', refused])).toMatchObject({
      kind: 'unreachable',
      reason: expect.stringMatching(/: jump host b: connect failed: Connection refused$/),
    })
    expect(failureBehindJump(endpoint, ['', '']).reason).toMatch(/ via a, b: no answer$/)
  })

  it('are printable, whatever a server sends as its banner', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: anyCharacter })), (lines) => {
        expect(failureFromOutput(lines, 'tcp').reason).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)
      }),
    )
  })
})

describe('the arguments of ssh', () => {
  it('put the host after a double dash, where nothing is an option', () => {
    for (const args of [
      masterArguments(endpointOf('m1'), '/c', 't'),
      clientArguments(endpointOf('m1'), '/c', [], 'ls -l'),
    ]) {
      expect(args.slice(args.indexOf('--') + 1)[0]).toBe('m1')
    }
    expect(clientArguments(endpointOf('m1'), '/c', [], 'ls -l').at(-1)).toBe('ls -l')
  })

  it('quote file names and take their tokens literally', () => {
    const args = masterArguments({ ...endpointOf('m1'), identityFiles: ['/keys/50% of mine'] }, '/c', 't')
    expect(args).toContain('IdentityFile="/keys/50%% of mine"')
  })

  it('name the route through jump hosts, and a proxy command with its tokens expanded', () => {
    const jump = [endpointOf('a'), { ...endpointOf('b'), address: '::1', port: 2222 }]
    const way = masterArguments({ ...endpointOf('m1'), jump }, '/c', 't').find((each) =>
      each.startsWith('ProxyCommand='),
    )
    expect(way).toMatch(/^ProxyCommand=sh -c 'exec ssh -E \/c-jump1 .* -W m1.invalid:22 .* -- b 2>\/dev\/null'$/)
    expect(way).toContain('[::1]:2222')
    expect(way).toContain('-E /c-jump0')
    expect(way).toMatch(/HostName=a\.invalid/)
    expect(masterArguments({ ...endpointOf('m1'), proxyCommand: 'nc 10%' }, '/c', 't')).toContain(
      'ProxyCommand=nc 10%%',
    )
  })

  it('forward the agent for each session as hosts.yaml says, whatever ssh_config says', () => {
    expect(clientArguments(endpointOf('m1'), '/c', [])).toContain('ForwardAgent=no')
    expect(clientArguments({ ...endpointOf('m1'), forwardAgent: true }, '/c', [])).toContain('ForwardAgent=yes')
  })

  it('never let a client connect or ask by itself', () => {
    const args = clientArguments(endpointOf('m1'), '/c', [])
    expect(args).toContain('ProxyCommand=false')
    expect(args).toContain('BatchMode=yes')
    expect(args).toContain('EscapeChar=none')
  })
})

describe('a login that has ended', () => {
  it('names what ssh said since then, else how ssh ended', () => {
    const debug = 'debug1: client_input_channel_req: channel 0'
    const statistics = ['Transferred: sent 3268, received 3352 bytes, in 0.1 seconds', 'Bytes per second: sent 48109.1']
    const closed = 'Connection to m1 closed by remote host.'
    expect(lossFromOutput([debug, closed, ...statistics, ''], { code: 255 })).toBe(
      'Connection to m1 closed by remote host',
    )
    expect(lossFromOutput([debug, 'Connection closed by UNKNOWN port 65535'], { code: 255 })).toBe(
      'its jump host or proxy command closed the connection',
    )
    const jump = [endpointOf('a'), endpointOf('b')]
    expect(lossFromOutput([closed], { code: 255 }, jump)).toBe(
      'Connection to m1 closed by remote host, or by one of its jump hosts (a, b)',
    )
    expect(lossFromOutput([debug], { signal: 'SIGKILL' })).toBe('ssh was ended by SIGKILL')
    expect(lossFromOutput([debug, ...statistics], { code: 255 })).toBe('ssh ended with exit code 255')
  })
})
