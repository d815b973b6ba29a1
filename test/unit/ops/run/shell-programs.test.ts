import { describe, expect, it } from 'vitest'
import { parseShellPrograms } from '../../../../src/ops/run/shell-programs.ts'

const shell = (id: number, front = id, words = '-bash') => `shell ${id} ${id} ${front} pts/${id} ${words}`
const program = (
  id: number,
  of: number,
  words: string,
  { group = id, front = id }: { group?: number; front?: number } = {},
) => `program ${id} ${group} ${front} pts/${of} ${words}`

describe('what runs in a shell', () => {
  it.each([
    ['nothing at a prompt', [shell(10)], []],
    ['a program in the foreground', [shell(10, 20), program(20, 10, 'sleep 500')], ['sleep 500']],
    [
      'a pipeline by its leader, and jobs in the background',
      [
        shell(10, 20),
        program(20, 10, 'tar c .'),
        program(21, 10, 'gzip', { group: 20, front: 20 }),
        program(30, 10, 'sleep 9', { front: 20 }),
      ],
      ['tar c .', 'sleep 9 &'],
    ],
    ['a program in place of the shell', [shell(10, 10, 'vim notes')], ['vim notes']],
    ['an ssh in place of the shell', [shell(10, 10, 'ssh m9')], ['ssh m9']],
    ['an interactive shell inside the shell', [shell(10, 20), program(20, 10, 'bash')], ['bash']],
    ['other shells of the machine', [shell(10), shell(11, 20), program(20, 11, 'make'), '/proc/10/environ'], []],
  ])('is %s', (_, lines, expected) => {
    expect(parseShellPrograms(lines.join('\n'))).toEqual(expected)
  })

  it('is unknown without a shell', () => {
    expect(parseShellPrograms('')).toBeUndefined()
    expect(parseShellPrograms('program 1 1 1 pts/1 x\nnonsense')).toBeUndefined()
  })

  it('is bounded, and does not act on a terminal', () => {
    const hostile = Array.from({ length: 300 }, (_, at) => program(100 + at, 10, `\x1b[2J${'x'.repeat(900)}`))
    const programs = parseShellPrograms([shell(10, 100), ...hostile].join('\n')) ?? []
    expect(programs).toHaveLength(20)
    for (const words of programs) expect(words).toMatch(/^\\x1b\[2Jx+… &$|^\\x1b\[2Jx+…$/)
  })
})
