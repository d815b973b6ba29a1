/** What a host that lies says of itself to bring-up and to the doctor: plans, statuses and reports stay whole and printable. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { BringUpReport } from '../../../src/cli/bring-up/report.ts'
import type { CliContext } from '../../../src/cli/command-line/verb.ts'
import { examineHost } from '../../../src/ops/doctor/examine-host.ts'
import type { DoctorEnd, DoctorHost } from '../../../src/ops/doctor/host-port.ts'
import { fleetFindings, formatFindings, hostFindings } from '../../../src/ops/doctor/report.ts'
import type { Area } from '../../../src/ops/kernel/area.ts'
import { gatherAreaFacts, statusesOf, verifyAreas } from '../../../src/ops/kernel/bring-up.ts'
import { gatherScript } from '../../../src/ops/kernel/fact.ts'
import type { ScriptResult } from '../../../src/ops/kernel/host-port.ts'
import { makePlan } from '../../../src/ops/kernel/plan.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { type GoodAnswer, goodResult, hostileHosts, resultOf } from '../../support/hostile-host/hostile-hosts.ts'
import { type Choice, type HostileAnswer, mutate } from '../../support/hostile-host/mutate.ts'
import { expectNoDefect, expectPrintable, playMutations } from '../../support/hostile-host/play.ts'
import { AREA_MAKERS } from '../../support/hosts-yaml.ts'
import { captured } from '../../unit/ops/doctor/capture.ts'
import { declaredOf, type PlanFixture, readFixture } from '../../unit/ops/kernel/plan-fixture.ts'

const MARK = 'm0123456789abcdef'
const signal = new AbortController().signal
const FIXTURES = join(import.meta.dirname, '../../fixtures/ops')

type Scene = { readonly areas: readonly Area[]; readonly good: ReadonlyMap<string, GoodAnswer> }

/** The answers of a fixture, as the script of facts prints them. */
function sceneOf(path: string): Scene | undefined {
  const fixture = readFixture<PlanFixture>(path)
  const isNfs = path.includes('/nfs/')
  const own = isNfs ? 'nfs' : path.includes('/ops/packages/') ? 'packages' : 'env'
  const declared = declaredOf({
    ...fixture,
    yaml: [isNfs ? 'hosts: { m8: , m10: }' : 'hosts: { m1: , m2: , m3: }', ...fixture.yaml],
  })
  const endpoints = new Map(
    declared.inventory.hosts.map(({ name }, at) => [name, endpointOf(name, { address: `10.0.0.${at + 1}` })]),
  )
  const areas = AREA_MAKERS.flatMap((maker) => maker.prepare({ ...declared, endpoints }) ?? []).filter(
    ({ name }) => name === own,
  )
  const [area] = areas
  if (area === undefined) return undefined
  const base = isNfs ? readFixture<PlanFixture>(join(FIXTURES, 'nfs/as-declared.json')).hosts : {}
  const good = new Map(
    area.hosts.map((host): [string, GoodAnswer] => {
      const answers = { ...base[host], ...fixture.hosts[host] }
      let [stdout, stderr] = ['', '']
      for (const [index, [name, { mayHang = false, parts }]] of Object.entries(area.factsOf(host)).entries()) {
        const answer = answers[name]
        if (answer === undefined || typeof answer === 'string') continue
        if (parts !== undefined) stderr += `\n${MARK} f${index}-0 0\x1f${answer.join('\x1f')}\n`
        else if (mayHang) stderr += `\n${MARK} f${index} 0\x1f${answer.join('\x1f')}\n`
        else stdout += `\n${MARK} f${index} 0\n${answer.join('\n')}\n\n${MARK} s${index} 0\n`
      }
      return [host, { stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) }]
    }),
  )
  return { areas, good }
}

/** Trust and Ray, on hosts that answer as this machine does. */
function liveScene(home: string): Scene {
  const yaml = [
    'hosts: { m1: , m2: , m3: }',
    'trust: { mesh: "m[1-3]" }',
    'ray: { head: m1, workers: "m[2-3]" }',
    'environment: { venv: { path: ~/lab } }',
  ]
  const declared = declaredOf({ yaml } as unknown as PlanFixture)
  const endpoints = new Map(
    declared.inventory.hosts.map(({ name }, at) => [name, endpointOf(name, { address: `10.0.0.${at + 1}` })]),
  )
  const areas = AREA_MAKERS.flatMap((maker) => maker.prepare({ ...declared, endpoints }) ?? []).filter(({ name }) =>
    ['trust', 'ray'].includes(name),
  )
  const names = ['m1', 'm2', 'm3']
  const good = new Map(
    names.map((host): [string, GoodAnswer] => {
      const facts = areas.flatMap((area) => Object.values(area.factsOf(host)))
      const script = `( ${gatherScript(facts, MARK)} ) 2>"$HOME/said"; cat "$HOME/said" >&2`
      const env = { PATH: process.env.PATH, HOME: home }
      const stdout = execFileSync('sh', ['-s'], { env, input: script, stdio: ['pipe', 'pipe', 'ignore'] })
      const stderr = execFileSync('cat', [join(home, 'said')])
      return [host, { stdout, stderr }]
    }),
  )
  return { areas, good }
}

async function bringUp(
  { areas, good }: Scene,
  choice: Choice,
  note: (...how: readonly string[]) => void,
): Promise<void> {
  const names = [...good.keys()]
  const liar = choice.one(names) ?? ''
  const foreign = [
    ...names.filter((name) => name !== liar),
    ...['root', MARK, `${MARK} f0 0`, `${MARK} s1 0`, '10.0.0.1'],
  ]
  const hosts = hostileHosts((host, _, options): ScriptResult => {
    const own = good.get(host) ?? {}
    if (host !== liar) return goodResult(own)
    const isStderr = own.stderr !== undefined && own.stderr.length > 0 && choice.once(3)
    const answer = mutate((isStderr ? own.stderr : own.stdout) ?? Buffer.alloc(0), choice, foreign)
    note(host, ...answer.how)
    return isStderr
      ? {
          ...resultOf(answer, { stderr: own.stderr ?? Buffer.alloc(0) }, options),
          stdout: own.stdout ?? Buffer.alloc(0),
        }
      : resultOf(answer, { stdout: own.stdout ?? Buffer.alloc(0), stderr: own.stderr ?? Buffer.alloc(0) }, options)
  })
  const printed: string[] = []
  const stream = { write: (text: string) => void printed.push(text) }
  const context = { stdout: stream, stderr: stream, environment: {}, now: () => 0 } as unknown as CliContext
  const factsByArea = await gatherAreaFacts(areas, { hosts, signal, mark: MARK, now: () => 0 })
  for (const direction of ['up', 'down'] as const) {
    const plan = makePlan(direction, areas, factsByArea)
    for (const { host } of plan.operations) if (!names.includes(host)) throw new Error(`it plans for ${host}`)
    new BringUpReport({}, context).plan(plan)
    new BringUpReport({ json: true }, context).plan(plan)
    if (direction === 'down') continue
    const findings = await verifyAreas(areas, factsByArea, plan, { hosts, signal }, 'status')
    for (const report of [new BringUpReport({}, context), new BringUpReport({ json: true }, context)]) {
      report.findings(findings)
      report.statuses(statusesOf(areas, factsByArea, plan, findings))
    }
    for (const { host } of findings) if (!names.includes(host)) throw new Error(`it finds something on ${host}`)
  }
  expectPrintable(printed.join('').replaceAll('\n', ''), 'the report')
}

describe('a hostile host that bring-up asks', () => {
  let home: string
  beforeAll(() => {
    home = mkdtempSync(join(tmpdir(), 'muster-facts-'))
    execFileSync(
      'sh',
      [
        '-c',
        'mkdir .ssh; ssh-keygen -qt ed25519 -N "" -f .ssh/id_muster; cat .ssh/id_muster.pub >.ssh/authorized_keys; echo "m9 $(cat .ssh/id_muster.pub)" >.ssh/known_hosts',
      ],
      { cwd: home },
    )
  })
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  it.each([
    'nfs',
    'env/plan',
    'packages',
  ])('changes no plan of other hosts, and prints nothing that acts: %s', async (folder) => {
    const scenes = readdirSync(join(FIXTURES, folder)).flatMap((name) => sceneOf(join(FIXTURES, folder, name)) ?? [])
    await playMutations(async ({ choice, note }) => await bringUp(choice.one(scenes) as Scene, choice, note))
  })

  it('changes no plan of other hosts, and prints nothing that acts: trust and Ray', async () => {
    const scene = liveScene(home)
    await playMutations(async ({ choice, note }) => await bringUp(scene, choice, note))
  })
})

describe('a hostile host that the doctor examines', () => {
  const CAPTURES = ['debian-12-dash', 'debian-12-full-tmp', 'alpine-busybox', 'macos'] as const
  const ENDS: Readonly<Record<HostileAnswer['end'], DoctorEnd>> = {
    well: { kind: 'exit', code: 0 },
    badly: { kind: 'exit', code: 1 },
    killed: { kind: 'signal', signal: 'SIGKILL' },
    lost: { kind: 'lost', reason: 'reset' },
    silent: { kind: 'timeout' },
  } as Readonly<Record<HostileAnswer['end'], DoctorEnd>>

  it('has a report about itself only, which acts on no terminal', async () => {
    await playMutations(async ({ choice, note }) => {
      const reply = (good: string) => {
        const answer = mutate(Buffer.from(good), choice, ['m1', 'mark', 'mark end 0', 'root'])
        note(...answer.how)
        return { stdout: Buffer.concat(answer.pieces).subarray(0, 1024 * 1024), end: ENDS[answer.end] }
      }
      const sick = choice.below(4)
      let asked = 0
      const host: DoctorHost = {
        async exec() {
          const good = ['', captured(choice.one(CAPTURES)), 'x'.repeat(300)][asked++] ?? ''
          const { stdout, end } =
            asked - 1 === sick % 3 || asked === 2 ? reply(good) : { stdout: Buffer.from(good), end: ENDS.well }
          return {
            stdout,
            stderr: sick === 3 ? noisy(reply) : Buffer.alloc(0),
            end: asked === 1 && sick !== 0 ? ENDS.well : end,
            durationMs: 5,
          }
        },
        async converse(_, questions) {
          const good = [
            `mark ${choice.one(['now', 'tick'])}`,
            ...questions.map((word) => (word === 'echo' ? word : '1700000000123456789')),
          ]
          const said = choice.once(2) ? good : good.map((line) => reply(line).stdout.toString())
          return said.map((answer, at) => ({ answer, sentAtMs: at, receivedAtMs: at + 2 }))
        },
      }
      const examination = await examineHost(host, { signal, mark: 'mark' })
      const report = { host: 'm2', inventoryName: 'm2', connectMs: 1, examination }
      const findings = [...hostFindings(report), ...fleetFindings([report, { host: 'm1', connectMs: 1, examination }])]
      for (const finding of findings)
        if (!['m1', 'm2'].includes(finding.host)) throw new Error(`it is about ${finding.host}`)
      const text = formatFindings(findings, ['m1', 'm2'])
      expectPrintable(text.replaceAll('\n', ''), 'the report')
      expectNoDefect(text, 'the report')
    })
  })
})

function noisy(reply: (good: string) => { readonly stdout: Buffer }): Buffer {
  return reply('bash: warning: setlocale\n').stdout
}
