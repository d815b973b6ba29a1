/** The area env on this machine as the host m1: its scripts in a real shell, with a home of their own. */

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { area as envAreaMaker } from '../../../../src/ops/env/env.ts'
import type { Area, ChangeDirection } from '../../../../src/ops/kernel/area.ts'
import { gatherFacts } from '../../../../src/ops/kernel/fact.ts'
import type { OpsHosts } from '../../../../src/ops/kernel/host-port.ts'
import type { Step } from '../../../../src/ops/kernel/operation.ts'
import { readInventory } from '../../../support/hosts-yaml.ts'
import { writeProgram } from '../../../support/program.ts'

export class OneHome implements Disposable {
  readonly home = mkdtempSync(join(tmpdir(), 'muster-env-'))
  readonly bin = join(this.home, 'bin')

  constructor() {
    mkdirSync(this.bin)
  }

  [Symbol.dispose](): void {
    rmSync(this.home, { recursive: true, force: true })
  }

  run(script: string, stdin: Uint8Array = Buffer.alloc(0), environment: Readonly<Record<string, string>> = {}) {
    const env = { PATH: `${this.bin}:/usr/bin:/bin`, HOME: this.home, ...environment }
    return spawnSync('sh', ['-c', script], { env, input: stdin })
  }

  program(name: string, text: string, directory = this.bin): void {
    writeProgram(join(directory, name), text)
  }

  /** What would be done, in order, or the sentences why nothing. */
  async look(area: Area, direction: ChangeDirection): Promise<readonly Step[] | string> {
    const signal = new AbortController().signal
    const gathered = await gatherFacts(this.#hosts, 'm1', area.factsOf('m1'), { signal, mark: 'mark', now: () => 1 })
    if (gathered.kind !== 'facts') throw new Error(gathered.reason)
    const areaFacts = { facts: new Map([['m1', gathered.facts]]), away: new Map() }
    const verdicts = area.plan(direction, areaFacts).map(({ verdict }) => verdict)
    const steps = verdicts.flatMap((verdict) => (verdict.kind === 'steps' ? verdict.steps : []))
    const sentences = verdicts.flatMap((verdict) => (verdict.kind === 'nothing' ? [verdict.because] : []))
    const causes = verdicts.flatMap((verdict) =>
      verdict.kind === 'blocked' ? verdict.findings.map(({ cause }) => cause) : [],
    )
    if (causes.length > 0) throw new Error(causes.join())
    return steps.length > 0 ? steps : sentences.join('; ')
  }

  async doIt(area: Area, direction: ChangeDirection, environment?: Readonly<Record<string, string>>) {
    const steps = await this.look(area, direction)
    if (typeof steps === 'string') throw new Error(steps)
    const results = steps.map(({ run: { script, stdin = [] } }) =>
      this.run(script, Buffer.concat(stdin.map((part) => Buffer.from(part as string))), environment),
    )
    const titles = steps.map(({ title }) => title)
    return {
      titles,
      codes: results.map(({ status }) => status),
      stderr: results.map(({ stderr }) => `${stderr}`).join(''),
    }
  }

  readonly #hosts: OpsHosts = {
    exec: async (_, script, { stdin }) => {
      const { status, stdout, stderr } = this.run(script, stdin)
      return { outcome: { kind: 'exit', code: status ?? -1 }, stdout, stderr, durationMs: 0 }
    },
  }
}

/** `declared`: the section; it names a file with this text. */
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex')

export function environmentArea(declared: string, file: string, text: string): Area {
  const inventory = readInventory(`hosts: { m1: }\nenvironment: ${declared}\n`, 'hosts.yaml')
  const files = new Map([[file, { kind: 'text', path: file, text, digest: digestOf(text) } as const]])
  const area = envAreaMaker.prepare({ inventory, endpoints: new Map(), files })
  if (area === undefined) throw new Error('nothing is declared')
  return area
}
