import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseShellPrograms, SHELL_PROGRAMS_SCRIPT } from '../../../../src/ops/run/shell-programs.ts'

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

  it('is not what runs on a terminal of the same name in a container', () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-ps-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const rows = ['50 1 50 -1 ? 50 sshd: root', '$ME 50 $ME -1 ? $ME sh', '60 50 60 61 pts/2 60 -bash']
    const others = ['61 60 61 61 pts/2 60 make all', '70 1 70 70 pts/2 70 bash in a container']
    const ps = `#!/bin/sh\ncat <<END\n${[...rows, ...others].join('\n')}\nEND\n`
    writeFileSync(join(directory, 'ps'), ps, { mode: 0o755 })
    const env = { ...process.env, PATH: `${directory}:${process.env.PATH}` }
    const { stdout } = spawnSync('sh', ['-c', `export ME=$$\n${SHELL_PROGRAMS_SCRIPT}`], { env, encoding: 'utf8' })
    expect(parseShellPrograms(stdout)).toEqual(['make all'])
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
