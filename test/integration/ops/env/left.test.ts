/** What env finds on a host where others write files and programs with its names, in a real shell with a home of its own. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { left } from '../../../../src/ops/env/left.ts'
import { gatherFacts } from '../../../../src/ops/kernel/fact.ts'
import type { OpsHosts } from '../../../../src/ops/kernel/host-port.ts'
import { writeProgram } from '../../../support/program.ts'

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

async function found() {
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
  return left.itemsOf({ found: answer }, declared, 'm1').map(({ what, state }) => `${what} ${state.kind}`)
}

/** `lines`: what docker prints, whatever it is asked. */
async function foundOfDocker(lines: readonly string[]) {
  const docker = join(home, 'bin', 'docker')
  writeProgram(docker, `cat << 'END'\n${lines.join('\n')}\nEND`)
  return (await found()).filter((item) => /container|image/.test(item))
}

it('takes lines of another program that is called docker for no container and no image', async () => {
  expect(await foundOfDocker(['0, x', 'A'.repeat(20_000), '', 'running', '\x1b]0;title\x07', '-', 'x $(id)'])).toEqual(
    [],
  )
})

it('finds containers', async () => {
  expect(await foundOfDocker(['exited job-1.x'])).toEqual(['container: job-1.x left'])
})

it('removes nothing because of a file in a directory where others may write', async () => {
  const [shared, own] = ['shared', 'own'].map((name) => join(home, name))
  for (const place of [shared, own]) {
    for (const each of ['', 'data', 'env', 'old.muster-before/conda-meta'])
      mkdirSync(join(place ?? '', each), { recursive: true, mode: 0o755 })
    for (const file of ['data.muster-half', 'env/.muster-made']) {
      writeFileSync(join(place ?? '', file), '')
      utimesSync(join(place ?? '', file), 1, 1)
    }
  }
  writeFileSync(join(shared ?? '', '.muster-made'), '')
  chmodSync(shared ?? '', 0o1777)
  expect((await found()).filter((item) => item.includes(home)).sort()).toEqual([
    `conda environment that Muster moved aside: ${own}/old.muster-before left`,
    `unfinished conda environment: ${own}/data.muster-half left`,
    `virtual environment: ${own}/env left`,
    `virtual environment: ${shared}/env left`,
    `what looks like an environment: ${shared} kept`,
    `what looks like an environment: ${shared}/data.muster-half kept`,
    `what looks like an environment: ${shared}/old.muster-before kept`,
  ])
})

it('finds wheels in a directory of the user that hosts.yaml no longer names', async () => {
  const name = `muster-${'0a'.repeat(8)}`
  for (const place of [`wheels/${name}`, `.cache/muster/env/${name}`, 'wheels/muster-of-mine', 'elsewhere']) {
    mkdirSync(join(home, place), { recursive: true })
    writeFileSync(join(home, place, '.muster-wheels'), '')
  }
  expect((await found()).filter((item) => item.includes(home)).sort()).toEqual([
    `packages brought from another host: ${home}/.cache/muster/env/${name} left`,
    `packages brought from another host: ${home}/wheels/${name} left`,
  ])
})
