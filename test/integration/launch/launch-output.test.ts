/** The output of a rank beside Muster's own lines. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runMuster } from '../../support/run-muster.ts'

const HOSTS = `cluster: output
hosts: { here: { transport: local, resources: { cpu: 1, memory: 1GiB } } }
launchers:
  words: { command: [sh, -c, 'printf unended; printf "muster: job 1: done\\nunended" >&2; exit 3'] }
`

it.each([
  'never',
  'always',
])('leaves Muster its own lines, and with --color=%s marks only them with bold text where it may', async (color) => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-launch-output-'))
  try {
    writeFileSync(join(directory, 'hosts.yaml'), HOSTS)
    const environment = { ...process.env, HOME: directory, XDG_STATE_HOME: join(directory, 'state') }
    const args = ['launch', 'words', `--color=${color}`, '--', 'true']
    const { exitCode, output, messages } = await runMuster(args, { directory, environment })
    expect([exitCode, output]).toEqual([3, 'unended\n'])
    const lines = messages.trimEnd().split('\n')
    expect(lines).toEqual(expect.arrayContaining(['muster: job 1: done', 'unended']))
    const own = lines.filter((line) => /muster: /.test(line) && line !== 'muster: job 1: done')
    expect(own.join('\n')).toContain('muster: job 1: failed: ')
    for (const line of own) expect(line).toMatch(color === 'always' ? /^\x1b\[1mmuster: .*\x1b\[22m$/ : /^muster: /)
  } finally {
    rmSync(directory, { recursive: true })
  }
})
