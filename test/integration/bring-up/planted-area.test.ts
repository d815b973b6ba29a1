/** A new area needs a folder and a line in AREAS: hosts.yaml, the verbs and their help know nothing else of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AREAS } from '../../../src/cli/bring-up/areas.ts'
import type { AreaEntry } from '../../../src/ops/kernel/area-entry.ts'
import { pbs } from '../../support/pbs-area/area.ts'
import { writeProgram } from '../../support/program.ts'

// The line. The verbs are made from the list when they are loaded.
;(AREAS as AreaEntry[]).push(pbs)
const { runMuster } = await import('../../support/run-muster.ts')
const { renderHostsYamlDocs } = await import('../../../scripts/generate-hosts-yaml-docs.ts')

let directory: string
let path: string | undefined
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-planted-area-'))
  path = process.env.PATH
  process.env.PATH = `${directory}:${path}`
})
afterEach(() => {
  process.env.PATH = path
  rmSync(directory, { recursive: true })
})

const muster = async (...args: readonly string[]) => await runMuster(args, { directory })

function declare(section: string): void {
  writeFileSync(join(directory, 'hosts.yaml'), `hosts: { "n[1-3]": { transport: local } }\npbs: ${section}\n`)
}

/** `pbsstat` on the hosts, which prints these lines. */
function answer(...lines: readonly string[]): void {
  const pbsstat = join(directory, 'pbsstat')
  writeProgram(pbsstat, `cat << 'END'\n${lines.join('\n')}\nEND`)
}

describe('a planted area', () => {
  it('has its section of hosts.yaml, and mistakes in it are reported with line and column', async () => {
    declare('{ controler: n1, nodes: "n[2-9]" }')
    const { exitCode, messages } = await muster('status', 'pbs')
    expect(exitCode).toBe(3)
    expect(messages).toContain('hosts.yaml:2:8: unknown key controler in pbs; did you mean controller?')
    expect(renderHostsYamlDocs()).toContain('| `controller` | host | **required** | The host that runs pbs_server.')
  })

  it('has its verbs, with help', async () => {
    expect((await muster('pbs', '--help')).output).toContain('compare the states of the nodes with hosts.yaml')
    expect((await muster('up', '--help')).output).toContain('trust, packages, nfs, env, ray, slurm, k8s, pbs')
  })

  it('shows its status, from facts and findings', async () => {
    declare('{ controller: n1, nodes: "n[2-3]" }')
    answer('n1 idle', 'n2 mixed', 'n3 idle')
    const good = await muster('pbs', 'status')
    expect([good.exitCode, good.output]).toEqual([0, 'good     pbs · n1\n1 good\n'])
    answer('n1 idle', 'n2 down*', 'n3 drained')
    const bad = await muster('status')
    expect(bad.exitCode).toBe(1)
    expect(bad.output).toContain('failed   pbs · n1: n2 is down · n3 is drained\n')
    expect(bad.output).toContain('scontrol show node n2 says why.')
    answer('n1 idle')
    // Once, although it is both why the area is blocked and a finding.
    expect((await muster('pbs', 'status')).output).toBe('blocked  pbs · n1: PBS does not know n2, n3\n1 blocked\n')
  })

  it('plans nothing for up', async () => {
    declare('{ controller: n1, nodes: "n[2-3]" }')
    answer('n1 idle', 'n2 mixed', 'n3 idle')
    const { exitCode, output } = await muster('up', 'pbs', '--yes')
    expect(output).toContain('nothing to do: PBS knows all 2 nodes\n')
    expect(exitCode).toBe(0)
  })
})
