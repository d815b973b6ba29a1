import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { createOpenSshSource, findProgram } from '../../src/inventory/ssh-config/openssh-source.ts'
import type { SshConfigAnswer, SshConfigQuestion } from '../../src/inventory/ssh-config/source.ts'
import { requirement } from '../support/requirements.ts'

const nodes = (count: number): SshConfigQuestion[] =>
  Array.from({ length: count }, (_, index) => ({ alias: `node${index + 1}` }))

describe.skipIf(!requirement('ssh'))('ssh -G for hosts that match the same blocks', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-equal-hosts-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  const configFile = join(directory, 'config')
  writeFileSync(join(directory, 'more'), 'Host node1*\n  Port 2201\nHost *5\n  User five\n')

  const pattern = fc.constantFrom(
    'node*',
    'node1',
    'node1?',
    '*2',
    '!node3',
    'NODE4',
    '"node5"',
    '*.lan',
    'node-6',
    '10.*',
    '*',
  )
  const setting = fc.constantFrom(
    'HostName %h.lan',
    'HostName gate',
    'Port 2222',
    'User somebody',
    'IdentityFile ~/.ssh/%h',
    'ProxyJump gate',
    'ProxyCommand nc %h %p',
    'UserKnownHostsFile ~/.ssh/%k',
    'ControlPath ~/.ssh/%C',
    'CanonicalizeHostname no',
    `Include ${join(directory, 'mor*')}`,
  )
  const opening = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.array(pattern, { minLength: 1, maxLength: 3 }).map((words) => `Host ${words.join(' ')}`),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        'Match all',
        'Match final all',
        'match host=node1*',
        'Match originalhost node2',
        '# Match all',
      ),
    },
  )
  type Block = readonly [head: string, lines: readonly string[]]
  const blocks = fc.array(fc.tuple(opening, fc.array(setting, { maxLength: 3 })), { maxLength: 5 })
  /** A block for each host, as most people have them, with something odd now and then. */
  const ownBlocks = fc
    .tuple(
      fc.subarray(['HostName 10.1.2.#', 'Port 22#', 'User u', 'HostName node#', 'HostName same', 'Port 2200']),
      fc.array(
        fc.tuple(
          fc.nat(11),
          fc.constantFrom('User root', 'Port 22 # x', 'Port 0', 'Compression yes', 'HostName %h.lan', 'Port "2299"'),
        ),
        { maxLength: 2 },
      ),
    )
    .map(([lines, odd]): Block[] =>
      nodes(12).map(({ alias }, index) => {
        const more = odd.flatMap(([at, line]) => (at === index ? line : []))
        return [`Host ${alias}`, [...lines.map((line) => line.replace('#', String(index + 1))), ...more]]
      }),
    )
  const config = fc
    .oneof(
      blocks,
      fc.tuple(blocks, ownBlocks, blocks).map((parts): Block[] => parts.flat()),
      fc.tuple(ownBlocks, blocks).map((parts): Block[] => parts.flat()),
      ownBlocks,
    )
    .map((all) => all.flatMap(([head, lines]) => [head, ...lines.map((line) => `  ${line}`)]).join('\n'))
  const name = fc.constantFrom(
    ...nodes(16).map(({ alias }) => alias),
    'node-6',
    'Node7',
    'gate',
    'x.lan',
    'root@node9',
    '10.0.0.1',
  )
  const question: fc.Arbitrary<SshConfigQuestion> = fc.record(
    {
      alias: name,
      address: fc.constantFrom('10.1.1.1', '10.1.1.2', 'node1', 'Elsewhere', 'fe80::1'),
      port: fc.constantFrom(22, 2200),
    },
    { requiredKeys: ['alias'] },
  )
  const questions = fc.oneof(
    fc.constant(nodes(12)),
    fc.constant(nodes(12).map(({ alias }, index) => ({ alias, address: `10.1.2.${index}` }))),
    fc.array(question, { minLength: 5, maxLength: 14 }),
  )

  /** The hash of the first and the last is the same, and not of the others. */
  const sameAddress: SshConfigQuestion[] = ['10.1.1.1', '10.1.1.2', '10.1.1.3', '10.1.1.4', '10.1.1.1'].map(
    (address, index) => ({ alias: `node${index + 1}`, address }),
  )

  /** How ssh was started shows in one value that says nothing about the host. */
  const comparable = (answer: SshConfigAnswer | undefined) =>
    answer?.ok ? [...answer.values].filter(([keyword]) => keyword !== 'stdinnull') : answer

  it('gives each host the answer that ssh gives for it alone', async () => {
    const ssh = findProgram('ssh', process.env.PATH)
    if (ssh === undefined) throw new Error('ssh is not in PATH')
    const source = createOpenSshSource({ ssh, configFile, env: process.env })
    await fc.assert(
      fc.asyncProperty(config, questions, async (text, all) => {
        writeFileSync(configFile, `${text}\n`)
        const together = await source.ask(all)
        const alone = await Promise.all(all.map(async (each) => (await source.ask([each]))[0]))
        expect(together.map(comparable)).toEqual(alone.map(comparable))
      }),
      { numRuns: 15, examples: [['Match all\n  ControlPath ~/.ssh/%C', sameAddress]] },
    )
  }, 300_000)
})
