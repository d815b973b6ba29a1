import { describe, expect, it } from 'vitest'
import { askAboutEqualHosts, type SshReply } from '../../../../src/inventory/ssh-config/equal-hosts.ts'
import type { SshConfigQuestion } from '../../../../src/inventory/ssh-config/source.ts'

const nodes = (count: number): SshConfigQuestion[] =>
  Array.from({ length: count }, (_, index) => ({ alias: `node${index + 1}` }))

/** An ssh that has read one file with this text and answers with these lines; counts how often it was asked. */
function standIn(config: string, linesOf: (alias: string) => readonly (readonly [string, string])[] = () => []) {
  const asked: string[] = []
  const ask = async (questions: readonly SshConfigQuestion[]): Promise<SshReply[]> =>
    questions.map(({ alias }) => {
      asked.push(alias)
      const lines = [['host', alias], ['hostname', alias], ...linesOf(alias)] as const
      return {
        answer: { ok: true, values: new Map(lines.map(([keyword, value]) => [keyword ?? '', [value ?? '']])) },
        remarks: ['OpenSSH_9.2p1', 'debug1: Reading configuration data /config'],
      }
    })
  return { asked, run: (questions: readonly SshConfigQuestion[]) => askAboutEqualHosts(questions, ask, () => config) }
}

describe('hosts that match the same blocks of ssh_config', () => {
  it('are resolved by asking about two of them', async () => {
    const ssh = standIn('Host *\n  Port 22\n')
    const answers = await ssh.run(nodes(50))
    expect(ssh.asked).toEqual(['node1', 'node50'])
    expect(answers[20]).toEqual({
      ok: true,
      values: new Map([
        ['host', ['node21']],
        ['hostname', ['node21']],
      ]),
    })
  })

  it('have a group of their own for each set of patterns that match them', async () => {
    const ssh = standIn('Host node1* !node12\n  Port 22\nHost node2?\n  Port 23\n')
    await ssh.run(nodes(30))
    expect(ssh.asked.length).toBeLessThan(12)
    expect(ssh.asked).toContain('node12')
  })

  it('may have blocks of their own with address, port and user, as most people write them', async () => {
    const own = (alias: string) => ({ hostname: `10.1.2.${alias.slice(4)}`, port: `22${alias.slice(4)}` })
    const blocks = nodes(12).map(
      ({ alias }) => `Host ${alias}\n  HostName ${own(alias).hostname}\n  Port ${own(alias).port}`,
    )
    const config = `ServerAliveInterval 5\n${blocks.join('\n')}\nHost *\n  User ubuntu\n`
    const ssh = standIn(config, (alias) => [...Object.entries(own(alias)), ['user', 'ubuntu']])
    const answers = await ssh.run(nodes(12))
    expect(ssh.asked).toEqual(['node1', 'node12'])
    expect(answers[4]).toEqual({
      ok: true,
      values: new Map([
        ['host', ['node5']],
        ['hostname', ['10.1.2.5']],
        ['port', ['225']],
        ['user', ['ubuntu']],
      ]),
    })
  })

  it.each([
    ['sets something else', 'Host node3\n  Port 2203\n  Compression yes\n'],
    ['comes after a line that sets the same', 'Host node*\n  Port 22\nHost node3\n  Port 2203\n'],
    ['comes after an Include', 'Host x\n  Include more\nHost node3\n  Port 2203\n'],
    ['is also for others', 'Host node3 x\n  Port 2203\n'],
    ['is not the only one', 'Host node3\n  Port 2203\nHost x !node3\n  User x\n'],
    ['has a port that is none', 'Host node3\n  Port 99999\n'],
    ['has a comment', 'Host node3\n  Port 2203 # x\n'],
    ['has a character that separates words only here', 'Host node3\n  Port 2203\u00a0\n'],
  ])('are asked by themselves if their own block %s', async (_, block) => {
    const blocks = nodes(10).map(({ alias }, index) => `Host ${alias}\n  Port ${2201 + index}\n`)
    const config = [...blocks.toSpliced(2, 1), block].join('')
    const ssh = standIn(config, (alias) => [['port', `22${alias.slice(4).padStart(2, '0')}`]])
    await ssh.run(nodes(10))
    expect(ssh.asked).toEqual(['node1', 'node10', 'node3'])
  })

  it.each([
    ['Match host node3', 'Host *\n  Port 22\nMatch host node3\n  Port 23\n'],
    ['Match exec', 'Match exec "test %h = node3"\n  Port 23\n'],
    ['an Include that depends on the host', 'Include /etc/ssh/%h.conf\n'],
    ['a pattern that is written in a strange way', "Host 'node3'\n  Port 23\n"],
  ])('are asked one by one because of %s', async (_, config) => {
    const ssh = standIn(config)
    await ssh.run(nodes(10))
    expect(ssh.asked.toSorted()).toEqual(
      nodes(10)
        .map(({ alias }) => alias)
        .sort(),
    )
  })

  it('are asked one by one if two answers differ in more than the name', async () => {
    const ssh = standIn('Host *\n', (alias) => [['controlpath', `/tmp/${alias}`]])
    await ssh.run(nodes(10))
    expect(ssh.asked).toHaveLength(10)
  })

  it('are asked one by one if names are made canonical', async () => {
    const ssh = standIn('Host *\n', () => [['canonicalizehostname', 'yes']])
    await ssh.run(nodes(10))
    expect(ssh.asked).toHaveLength(10)
  })

  it('are asked one by one if ssh does not say which files it reads', async () => {
    const asked: SshConfigQuestion[] = []
    await askAboutEqualHosts(nodes(10), async (questions) => {
      asked.push(...questions)
      return questions.map(({ alias }) => ({ answer: { ok: true, values: new Map([['host', [alias]]]) }, remarks: [] }))
    })
    expect(asked).toHaveLength(10)
  })
})
