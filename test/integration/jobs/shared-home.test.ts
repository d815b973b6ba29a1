/** Shells of the queue on hosts that share a home, where two may have the same process id. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { formatPrelude } from '../../../src/scheduler/jobs/host-program.ts'

it('gives the pipes of two shells with the same process id different names', () => {
  const state = mkdtempSync(join(tmpdir(), 'muster-shared-'))
  try {
    // Subshells have the process id of their shell in $$.
    const both = ['a', 'b'].map((pipe) => `(\n${formatPrelude('m', pipe)}\n)\n`).join('')
    const script = `mkfifo() { echo "$1" >>"$XDG_STATE_HOME/names"; false; }\n${both}`
    execFileSync('sh', [], { input: script, env: { ...process.env, XDG_STATE_HOME: state } })
    const names = readFileSync(join(state, 'names'), 'utf8').trim().split('\n')
    expect(new Set(names).size).toBe(2)
  } finally {
    rmSync(state, { recursive: true, force: true })
  }
})
