/** The mesh in the Network tab: from the prompt to the picture, over a port that measures nothing. */
import { describe, expect, it } from 'vitest'
import type { StepEnd } from '../../../../src/ops/kernel/apply.ts'
import type { ChangeEnd, ChangeHandlers } from '../../../../src/ops/kernel/change.ts'
import { operationOf, type Step } from '../../../../src/ops/kernel/operation.ts'
import { judgeMesh } from '../../../../src/ops/net/mesh/judge.ts'
import { formatMs, type LinkOutcome } from '../../../../src/ops/net/mesh/link.ts'
import type { MeshEvent, MeshHost, MeshReport } from '../../../../src/ops/net/mesh/measure-mesh.ts'
import { type PaneView, themes } from '../../../../src/ui/compositor/scene.ts'
import { picturePanes } from '../../../../src/ui/network/mesh-panes.ts'
import { openPicture, pictureKeys, pictureOf } from '../../../../src/ui/network/mesh-picture.ts'
import type { NetTestsPort } from '../../../../src/ui/network/net-tests-port.ts'
import { networkKeys } from '../../../../src/ui/network/network-page.ts'
import { pageHints } from '../../../../src/ui/tabs/page-keys.ts'
import { createConsoleHarness, idleNetTests } from '../console/console-harness.ts'

const LEADER = '\x1d'

const FACTS = { addresses: [], cards: [], hasPing: true, hasTimeout: true, iperf3: '3.12' }

const readyHost = (name: string): MeshHost => ({
  name,
  facts: FACTS,
  place: { address: '10.9.0.1' },
})

const measured = (megabits: number): LinkOutcome => ({
  kind: 'measured',
  tool: 'iperf3',
  bitsPerSecond: megabits * 1e6,
})

function meshOf(count: number, outcome: (from: string, to: string) => LinkOutcome): MeshReport {
  const names = Array.from({ length: count }, (_, index) => `m${index + 1}`)
  const links = names.flatMap((from) =>
    names.flatMap((to) => (from === to ? [] : [{ from, to, outcome: outcome(from, to) }])),
  )
  return { hosts: names.map(readyHost), pings: [], links }
}

const slowOne = (slow: string) => (from: string, to: string) => measured(from === slow || to === slow ? 112 : 941)

const textOf = ({ notice, title }: PaneView): string =>
  [title, ...notice].map((row) => row.map(({ text }) => text).join('')).join('\n')

function picture(report: MeshReport, columns: number, rows: number): readonly string[] {
  const state = openPicture(pictureOf(report, 0, judgeMesh(report)))
  const rect = { column: 0, row: 1, width: columns, height: rows - 2 }
  return picturePanes(state, { rect, theme: themes.none, nowMs: 0 }).map(textOf)
}

it('shows nine hosts on 80×24 with the rate of every link and the host that is slow', () => {
  const [matrix = '', words = ''] = picture(meshOf(9, slowOne('m5')), 80, 24)
  expect(matrix.match(/941M█/g)).toHaveLength(56)
  expect(matrix.match(/112M░/g)).toHaveLength(16)
  expect(words).toMatch(/risk: m5 is slow to and from all hosts/)
})

it('shows all of 64 hosts on 240×67 with two columns for each link, readable without colours', () => {
  const [matrix = '', words = ''] = picture(meshOf(64, slowOne('m33')), 240, 67)
  const rows = matrix.split('\n').filter((row) => /^m\d+ +\d+/.test(row))
  expect(rows).toHaveLength(64)
  expect(matrix.match(/██/g)).toHaveLength(63 * 62)
  expect(matrix.match(/░░/g)).toHaveLength(2 * 63)
  expect(words).toMatch(/risk: m33 is slow/)
})

it('says how many links are without problems when the others were not measured', () => {
  const stopped: LinkOutcome = { kind: 'failed', cause: 'cancelled', reason: 'stopped' }
  const words = (report: MeshReport) => picture(report, 120, 40)[1]
  const one = meshOf(3, (from, to) => (from === 'm1' && to === 'm2' ? measured(941) : stopped))
  expect(words(one)).toContain('no problems in the 1 link measured')
  expect(words(one)).not.toContain('no problems found')
  expect(words(meshOf(3, () => measured(941)))).toContain('no problems found')
})

it('marks the selected link, which stands between the findings', () => {
  const [, words = ''] = picture(meshOf(3, slowOne('m3')), 120, 40)
  expect(words).toMatch(/^▸m\d → m\d $/m)
})

it('offers the next slow link only where there is one', () => {
  const hintsOf = (report: MeshReport) =>
    pictureKeys.filter(({ isActive }) => isActive?.(openPicture(pictureOf(report, 0, []))) !== false)
  const hasNext = (report: MeshReport) => hintsOf(report).some(({ id }) => id === 'next')
  expect([hasNext(meshOf(3, () => measured(941))), hasNext(meshOf(5, slowOne('m3')))]).toEqual([false, true])
})

it.each([
  [80, 24],
  [120, 40],
])('shows the whole round trip of a link on %i×%i', (columns, rows) => {
  const outcome = { ...measured(941), loadedRttMs: 10.81 } as LinkOutcome
  const pings = [{ from: 'm1', to: 'm2', sent: 5, lostFraction: 0, meanMs: 10.51, minMs: 10.41 }]
  const state = openPicture(pictureOf({ ...meshOf(2, () => outcome), pings }, 0, []))
  const rect = { column: 0, row: 1, width: columns, height: rows - 2 }
  const [there] = picturePanes({ ...state, isOpen: true }, { rect, theme: themes.none, nowMs: 0 })
  const text = (there === undefined ? '' : textOf(there)).replaceAll(/\s+/g, ' ')
  expect(text).toContain(`${formatMs(10.51)} idle (at least ${formatMs(10.41)}), ${formatMs(10.81)} under load`)
})

it('selects the link that the first finding is about', () => {
  // Slow for its two hosts, which are faster with others, but not slow compared with the median.
  const rates: Readonly<Record<string, number>> = { m1m2: 1300, m2m1: 1300, m3m4: 1300, m4m3: 1300, m2m3: 650 }
  const report = meshOf(4, (from, to) => measured(rates[from + to] ?? 900))
  const { row, column } = openPicture(pictureOf(report, 0, judgeMesh(report)))
  expect([row, column]).toEqual([1, 2])
})

it('fills a large screen: cells of few hosts are tiles with their rates', () => {
  for (const count of [3, 4, 6, 9]) {
    const [matrix = ''] = picture(meshOf(count, slowOne('m2')), 240, 67)
    const rows = matrix.split('\n')
    expect(rows.length).toBeGreaterThanOrEqual(38)
    expect(Math.max(...rows.map((row) => row.length))).toBeGreaterThanOrEqual(140)
    expect(matrix.match(/█ +941M +█/g)).toHaveLength((count - 1) * (count - 2))
  }
})

it.each([
  [120, 40],
  [80, 24],
  [40, 10],
])('fits into %d×%d with 64 hosts, the selected link in view', (columns, rows) => {
  const report = meshOf(64, slowOne('m64'))
  const state = openPicture(pictureOf(report, 0, judgeMesh(report)))
  const rect = { column: 0, row: 1, width: columns, height: rows - 2 }
  for (const pane of picturePanes({ ...state, row: 63, column: 62 }, { rect, theme: themes.none, nowMs: 0 })) {
    expect(pane.notice.length).toBeLessThanOrEqual(pane.rect.height - 2)
    if (pane.host === ' mesh') expect(textOf(pane)).toMatch(/m64 +64/)
  }
})

it('selects the cell that is clicked, also in tiles and where the matrix has scrolled', () => {
  for (const [count, columns, rows, line, column, cell] of [
    [6, 240, 67, 1 + 8 * 4, 7 + 30 * 2, [4, 2]],
    [64, 80, 24, 2, 7 + 5, [53, 5]],
  ] as const) {
    const report = meshOf(count, slowOne('m1'))
    const state = { ...openPicture(pictureOf(report, 0, [])), row: count - 1, column: 0 }
    const clicked: (readonly number[])[] = []
    const onChange = (next: typeof state) => clicked.push([next.row, next.column])
    const rect = { column: 0, row: 1, width: columns, height: rows - 2 }
    const [matrix] = picturePanes(state, { rect, theme: themes.none, nowMs: 0, onChange })
    matrix?.mouse?.list?.select(line, column)
    expect(clicked).toEqual([cell])
  }
})

it('confines false results and escape bytes to the cells of their host', () => {
  const outcome = (from: string, to: string): LinkOutcome => {
    if (from === 'm9') return measured(2 ** 60)
    if (to === 'm9') return { kind: 'failed', cause: 'broken', reason: '\x1b]0;owned\x07\x1b[2J' }
    return measured(941)
  }
  const [matrix = '', words = ''] = picture(meshOf(9, outcome), 80, 24)
  expect(matrix.match(/ 941M█/g)).toHaveLength(56)
  expect(matrix + words).not.toMatch(/[\x1b\x07]/)
  expect(words).toContain('\\x1b')
})

it('leaves hosts that are away out of the steps of the plan, and starts nothing without two hosts', async () => {
  const up = new Set(['m1', 'm3'])
  const netTests: NetTestsPort = {
    ...idleNetTests,
    survey: async ({ hosts }) =>
      hosts.map((name) => (up.has(name) ? readyHost(name) : { name, cause: 'away', reason: 'no route to the host' })),
  }
  const harness = createConsoleHarness({ netTests })
  const plan = async (): Promise<string> => {
    harness.type('m\r')
    await new Promise((resolve) => setImmediate(resolve))
    const rect = { column: 0, row: 1, width: 120, height: 38 }
    return harness.console.pages.network.panes(rect, themes.none).map(textOf).join('\n')
  }
  harness.type(`${LEADER}3`)
  const some = await plan()
  expect(some).toMatch(/plan ready[\s\S]*2 links in 2 steps[\s\S]*m2 is skipped: no route to the host/)
  expect(some.match(/ → /g)).toHaveLength(2)
  up.delete('m3')
  harness.type('\x1b')
  const none = await plan()
  expect(none).toContain('mesh: nothing can be measured')
  expect(none).toContain('m[1-4]: no link can be measured without two hosts that answer')
  harness.type('\r')
  expect(harness.console.state.network.mesh?.phase).toBe('plan')
  harness.console[Symbol.dispose]()
})

it('asks for the hosts, shows the plan, fills the matrix, and keeps what is measured when it is stopped', async () => {
  const report = meshOf(3, slowOne('m3'))
  let onEvent: ((event: MeshEvent) => void) | undefined
  let order: readonly string[] = []
  const end = Promise.withResolvers<void>()
  const netTests: NetTestsPort = {
    ...idleNetTests,
    survey: async ({ hosts }) => hosts.map(readyHost),
    async measureMesh({ hosts }, signal, handler) {
      order = hosts
      onEvent = handler
      signal.addEventListener('abort', () => end.resolve())
      await end.promise
      const links = report.links.map((link, index) =>
        index === 0 ? link : { ...link, outcome: { kind: 'failed', cause: 'cancelled', reason: 'stopped' } as const },
      )
      return { report: { ...report, links }, findings: [], earlier: undefined, problem: undefined }
    },
  }
  const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3', 'm4'], netTests, size: { columns: 80, rows: 24 } })
  const page = harness.console.pages.network
  const text = () => page.panes({ column: 0, row: 1, width: 80, height: 22 }, themes.none).map(textOf).join('\n')
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  harness.type(`${LEADER}3m`)
  expect(harness.console.state.mode).toMatchObject({
    kind: 'dialog',
    dialog: { id: 'mesh', input: { text: 'm[1-4]' } },
  })
  harness.type('\x15m[1-3]\r')
  await settle()
  expect(text()).toContain('m[1-3]: 6 links in 6 steps of 5 s, about 33 s')
  expect(text()).toContain('6 links with iperf3, between m[1-3]')
  expect(order).toEqual([])
  harness.type('\x03')
  expect(harness.console.state.network.views.at(-1)).toBe('live')
  harness.type('m\x15m[1-3]\r')
  await settle()
  harness.type('\r')
  expect(order).toEqual(['m1', 'm2', 'm3'])
  expect(page.busy).toMatchObject([{ title: 'mesh', hosts: ['m1', 'm2', 'm3'] }])
  onEvent?.({ type: 'slot', index: 0, count: 6, remainingMs: 33_000 })
  harness.clock.advance(300)
  expect(text()).toMatch(/step 1 of 6, about 33 s left/)
  const [link] = report.links
  if (link) onEvent?.({ type: 'link', link })
  harness.clock.advance(300)
  expect(text()).toMatch(/1 of 6 links/)
  expect(text()).toMatch(/m1 .*941M *█/)
  // Neither Esc nor another tab ends it, and m goes back to it.
  const hints = () => pageHints(harness.console.state)
  expect(hints()[0]).toEqual(['Esc', 'hosts'])
  harness.type('\x1b')
  expect(text()).toContain('HOST')
  expect(hints()).toContainEqual(['m', 'show mesh'])
  harness.type('p')
  expect(harness.console.state.notice?.text).toContain('a mesh is still measured')
  harness.type('m')
  expect(harness.console.state.notice).toBeUndefined()
  harness.type('43m')
  expect(text()).toMatch(/1 of 6 links/)
  expect(page.busy).toHaveLength(1)
  harness.type('\x03\x1b')
  await settle()
  expect(page.busy).toEqual([])
  expect(harness.console.state.notice?.text).toBe('mesh measured: m shows it')
  harness.type('m')
  expect(text()).toContain('1 of 6 links measured')
  expect(text()).toMatch(/m1 .*941M *█/)
  harness.type('\x1b')
  expect(text()).toContain('HOST')
  expect(hints()).toContainEqual(['m', 'bandwidth'])
  for (const host of ['m1', 'm2', 'm3', 'm4']) expect(harness.got(host)).toBe('')
  harness.console[Symbol.dispose]()
})

describe('the installation of iperf3 from the plan', () => {
  const begin = () => {
    const lacking = new Set(['m2', 'm3'])
    let handlers: ChangeHandlers | undefined
    let signal: AbortSignal | undefined
    let ended = Promise.withResolvers<ChangeEnd['kind']>()
    const netTests: NetTestsPort = {
      ...idleNetTests,
      survey: async ({ hosts }) =>
        hosts.map((name): MeshHost => {
          const { iperf3, ...facts } = FACTS
          return { ...readyHost(name), facts: lacking.has(name) ? facts : { ...facts, iperf3 } }
        }),
      async installIperf(_, own, given) {
        handlers = given
        signal = own
        ended = Promise.withResolvers()
        return await ended.promise
      },
    }
    const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3'], netTests, size: { columns: 80, rows: 24 } })
    const page = harness.console.pages.network
    const operations = [...lacking].map((host) => {
      const run = { kind: 'script', script: 'apt-get install iperf3' } as const
      const step: Step = { id: host, title: 'install iperf3 with apt', changes: ['+ iperf3'], run }
      return operationOf('iperf', host, 'packages', 'iperf3', { kind: 'steps', state: 'missing', steps: [step] })
    })
    const settle = async () => {
      await new Promise((resolve) => setImmediate(resolve))
      harness.clock.advance(300)
    }
    return {
      harness,
      page,
      lacking,
      text: () => page.panes({ column: 0, row: 1, width: 80, height: 22 }, themes.none).map(textOf).join('\n'),
      keys: () => networkKeys.filter(({ isActive }) => isActive?.(harness.console.state) !== false).map(({ id }) => id),
      settle,
      async plan() {
        harness.type(`${LEADER}3m\x15m[1-3]\r`)
        await settle()
      },
      async ask() {
        harness.type('i')
        handlers?.onPlan({ direction: 'up', operations }, false)
        const answer = handlers?.confirm({ direction: 'up', operations })
        await settle()
        return answer
      },
      event: (host: string, event: { type: 'begin' } | { type: 'end'; end: StepEnd; durationMs: number }) => {
        const operation = operations.find((each) => each.host === host)
        const step = operation?.verdict.kind === 'steps' ? operation.verdict.steps[0] : undefined
        if (operation !== undefined && step !== undefined) handlers?.onEvent({ operation, step, ...event })
      },
      async end(kind: ChangeEnd['kind']) {
        ended.resolve(kind)
        await settle()
        await settle()
      },
      isAborted: () => signal?.aborted,
    }
  }

  it('shows its own plan, its steps, and then a new plan of the mesh that names what was installed', async () => {
    const test = begin()
    await test.plan()
    expect(test.text()).toMatch(/iperf3 is not installed on m\[2-3\]\s+Press i to install it first/)
    const answer = test.ask()
    await test.settle()
    expect(test.text()).toMatch(/iperf · iperf3 · m\[2-3\]\s+install iperf3 with apt/)
    expect(test.keys()).toEqual(expect.arrayContaining(['apply', 'discard']))
    expect(test.keys()).not.toContain('start')
    test.harness.type('y')
    expect(await answer).toBe(true)
    test.event('m2', { type: 'begin' })
    await test.settle()
    expect(test.text()).toMatch(/m2 +0 of 1 step/)
    expect(test.page.busy).toMatchObject([{ title: 'installation of iperf' }])
    test.event('m2', { type: 'end', end: { kind: 'done' }, durationMs: 9 })
    const outcome = { kind: 'exit', code: 1 } as const
    test.event('m3', { type: 'end', end: { kind: 'failed', outcome, reason: 'no archive' }, durationMs: 9 })
    test.lacking.delete('m2')
    await test.end('done')
    expect(test.text()).toContain('plan ready, Enter starts it')
    expect(test.text()).toContain('installed iperf3 on m2; to remove it: muster net uninstall m2')
    expect(test.text()).toContain('m3: install iperf3 with apt failed: no archive')
    expect(test.text()).toContain('iperf3 is not installed on m3')
    expect(test.page.busy).toEqual([])
    test.harness.console[Symbol.dispose]()
  })

  it('returns to the plan of the mesh when declined, and stops on request', async () => {
    const test = begin()
    await test.plan()
    const answer = test.ask()
    await test.settle()
    test.harness.type('\x1b')
    expect(await answer).toBe(false)
    await test.end('declined')
    expect(test.text()).toContain('plan ready, Enter starts it')
    void test.ask()
    await test.settle()
    test.harness.type('y')
    test.event('m2', { type: 'begin' })
    await test.settle()
    // Esc asks first.
    test.harness.type('\x1b')
    expect(test.harness.console.state.mode).toMatchObject({ dialog: { title: 'Stop the installation?' } })
    test.harness.type('\x1b')
    expect(test.isAborted()).toBe(false)
    test.harness.type('\x03')
    expect(test.isAborted()).toBe(true)
    test.event('m2', { type: 'end', end: { kind: 'cancelled' }, durationMs: 9 })
    await test.end('cancelled')
    expect(test.text()).toContain('m2: install iperf3 with apt: cancelled')
    expect(test.text()).toContain('plan ready, Enter starts it')
    test.harness.console[Symbol.dispose]()
  })
})
