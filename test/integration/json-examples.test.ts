/** The examples with jq in docs/json.md do what the page says. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { run } from '../lab/cluster/run.ts'
import { PROGRAM, ROOT } from '../support/console-options.ts'
import { requirement } from '../support/requirements.ts'

const page = readFileSync(join(ROOT, 'docs', 'json.md'), 'utf8')
const section = page.slice(page.indexOf('\n## With jq\n'), page.indexOf('\n## `muster run --json`'))
const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, kind = '', text = '']) => ({ kind, text }))
/** Each command line with what it prints. */
const examples = blocks
  .filter(({ kind }) => kind === 'console')
  .flatMap(({ text }) => text.split(/^\$ /m).slice(1))
  .map((text) => ({ command: text.slice(0, text.indexOf('\n')), shown: text.slice(text.indexOf('\n') + 1) }))

describe.skipIf(!requirement('jq'))('an example of docs/json.md', () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-examples-'))
  afterAll(() => rmSync(directory, { recursive: true }))
  writeFileSync(join(directory, 'hosts.yaml'), blocks.find(({ kind }) => kind === 'yaml')?.text ?? '')
  writeFileSync(join(directory, 'muster'), `#!/bin/sh\nexec ${PROGRAM.map((word) => `'${word}'`).join(' ')} "$@"\n`, {
    mode: 0o700,
  })
  const environment = {
    PATH: `${directory}:${process.env.PATH}`,
    HOME: directory,
    LANG: 'C.UTF-8',
    MUSTER_HOSTS: 'hosts.yaml',
  }

  it('is one of several', () => expect(examples.length).toBeGreaterThanOrEqual(5))

  it.each(examples)('$command', async ({ command, shown }) => {
    const { code, stdout, stderr } = await run(['bash', '-o', 'pipefail', '-c', command], {
      environment,
      directory,
    })
    // What the doctor finds depends on the machine.
    if (command.startsWith('muster doctor')) expect(stderr).not.toMatch(/jq:|usage/)
    else
      expect({ stdout, stderr: stderr.replaceAll(/^muster: (no scheduler running|3 hosts: ).*\n/gm, '') }).toEqual({
        stdout: shown,
        stderr: '',
      })
    expect([0, 1]).toContain(code)
  })
})
