/** What env finds on a host where another program is called docker, in a real shell with a home of its own. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { left } from '../../../../src/ops/env/left.ts'
import { gatherFacts } from '../../../../src/ops/kernel/fact.ts'
import type { OpsHosts } from '../../../../src/ops/kernel/host-port.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'muster-left-'))
  mkdirSync(join(home, 'bin'))
})
afterEach(() => rmSync(home, { recursive: true }))

const here: OpsHosts = {
  async exec(_host, script, { stdin = Buffer.alloc(0) }) {
    const env = { PATH: `${join(home, 'bin')}:/usr/bin:/bin`, HOME: home, TMPDIR: home }
    const { status, stdout, stderr } = spawnSync('sh', ['-c', script], { env, input: stdin })
    return { outcome: { kind: 'exit', code: status ?? -1 }, stdout, stderr, durationMs: 0 }
  },
}

/** `lines`: what docker prints, whatever it is asked. */
async function found(lines: readonly string[]) {
  const docker = join(home, 'bin', 'docker')
  writeFileSync(docker, `#!/bin/sh\ncat << 'END'\n${lines.join('\n')}\nEND\n`)
  chmodSync(docker, 0o755)
  const declared = { inventory: { hosts: [], groups: new Map() }, endpoints: new Map() }
  const facts = left.factsOf(declared, 'm1', [])
  const gathered = await gatherFacts(here, 'm1', facts, {
    signal: new AbortController().signal,
    mark: 'mark',
    now: () => 1,
  })
  if (gathered.kind !== 'facts') throw new Error(gathered.reason)
  const answer = gathered.facts.facts.found
  if (answer === undefined) throw new Error('no answer')
  const items = left.itemsOf({ found: answer }, declared, 'm1')
  return items.flatMap(({ what, state }) => (/container|image/.test(what) ? [`${what} ${state.kind}`] : []))
}

it('takes lines of another program that is called docker for no container and no image', async () => {
  expect(await found(['0, x', 'A'.repeat(20_000), '', 'running', '\x1b]0;title\x07', '-', 'x $(id)'])).toEqual([])
})

it('finds containers', async () => {
  expect(await found(['exited job-1.x'])).toEqual(['container: job-1.x left'])
})
