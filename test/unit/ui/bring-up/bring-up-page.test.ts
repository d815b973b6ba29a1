import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { timeText } from '../../../../src/base/time-text.ts'
import { foldHostSet } from '../../../../src/inventory/host-set.ts'
import type { Operation } from '../../../../src/ops/kernel/operation.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { footerBars, headerBars } from '../../../../src/ui/console/header.ts'
import { areaOf } from '../../../../src/ui/work-views/panel.ts'
import { createConsoleHarness } from '../console/console-harness.ts'
import { FakeBringUp, operationOf, planOf, statusOf, stepOf } from './fake-bring-up.ts'

const LEADER = '\x1d'
const SIZES = [
  [80, 24],
  [120, 40],
  [240, 67],
] as const

async function openTab(columns = 80, rows = 24) {
  const port = new FakeBringUp()
  const harness = createConsoleHarness({ hosts: ['m1', 'm2', 'm3'], size: { columns, rows }, bringUp: port })
  const nowMs = harness.clock.now()
  port.statuses = [statusOf('m1', 'good', nowMs), statusOf('m2', 'missing', nowMs), statusOf('m3', 'away')]
  /** What is written inside the frames, row after row. */
  const text = (): string => {
    const { state, page } = harness.console
    const panes = page?.panes(areaOf(state), themes.none) ?? []
    return panes.flatMap(({ notice }) => notice.map((row) => row.map((span) => span.text).join(''))).join('\n')
  }
  const bar = (bars: typeof headerBars | typeof footerBars): string => {
    const { console } = harness
    const { left, right } =
      bars === footerBars
        ? footerBars(console.state, themes.none)
        : headerBars(console.state, themes.none, console.arrangement)
    return [...left, ...right].map((part) => part.text).join('')
  }
  harness.type(`${LEADER}2`)
  await setImmediate()
  return { ...harness, port, text, header: () => bar(headerBars), footer: () => bar(footerBars) }
}

/** A change whose plan is there and was agreed to. */
async function begun(key = 'u') {
  const tab = await openTab(120, 40)
  tab.type(key)
  const { handlers } = tab.port.last
  handlers.onPhase?.('check')
  handlers.onPlan(planOf('m1', 'm2'), false)
  const agreed = handlers.confirm(planOf('m1', 'm2'))
  tab.type('y')
  expect(await agreed).toBe(true)
  handlers.onPhase?.('apply')
  return tab
}

describe('the Bring-up tab', () => {
  it('follows hosts.yaml, without checking the hosts', async () => {
    const { port, console, text, type } = await openTab(120, 40)
    const declared = port.columns
    port.columns = declared.map(({ name }) => ({ name, hosts: undefined }))
    type('r')
    await setImmediate()
    expect(text()).toContain('hosts.yaml declares nothing to bring up.')
    port.columns = [
      { name: 'trust', hosts: undefined },
      { name: 'nfs', hosts: ['m1', 'm2'] },
    ]
    const { checks } = port
    for (const page of Object.values(console.pages)) page.onDeclared?.()
    await setImmediate()
    expect(text()).toMatch(/m1 +- +\? unknown/)
    expect(text()).not.toContain('✓ 1 good')
    expect(console.state.bringUp.cursor.area).toBe('nfs')
    expect(port.checks).toBe(checks)
    port.statuses = ['m1', 'm2'].map((host) => ({ ...statusOf(host, 'good', 0), area: 'nfs' }))
    type('r')
    await setImmediate()
    expect(text()).toMatch(/m1 +- +✓ good/)
    port.columns = [
      { name: 'trust', hosts: undefined },
      { name: 'nfs', hosts: ['m1', 'm2'], digest: 'another mount point' },
    ]
    for (const page of Object.values(console.pages)) page.onDeclared?.()
    await setImmediate()
    expect(text()).toMatch(/m1 +- +\? unknown/)
  })

  it.each(['is noticed', 'is noticed only by y'])('discards a plan when hosts.yaml changes, which %s', async (how) => {
    const { type, port, console, footer } = await openTab(120, 40)
    type('d')
    const { handlers, order } = port.last
    handlers.onPhase?.('check')
    handlers.onPlan(planOf('m1', 'm2'), false)
    const agreed = handlers.confirm(planOf('m1', 'm2'))
    expect(footer()).toContain('y apply')
    const edit = () => {
      port.columns = port.columns.map((column) => ({ ...column, digest: `${column.name} of other hosts` }))
    }
    if (how === 'is noticed') {
      edit()
      for (const page of Object.values(console.pages)) page.onDeclared?.()
      await setImmediate()
      type('y')
    } else {
      console.readFiles = async () => {
        edit()
        return undefined
      }
      type('y')
    }
    expect(await agreed).toBe(false)
    expect(order.signal.aborted).toBe(true)
    port.last.ended.resolve({ kind: 'declined', statuses: [] })
    await setImmediate()
    expect(footer()).not.toContain('y apply')
    if (how !== 'is noticed')
      expect(console.state.notice?.text).toBe(
        'hosts.yaml, or a file that it names, has changed since this plan: d makes a new one',
      )
  })

  it('plans with a hosts.yaml that was saved a moment ago', async () => {
    const { type, port, console } = await openTab(120, 40)
    console.readFiles = async () => {
      port.columns = [{ name: 'nfs', hosts: ['m3'], digest: 'new' }]
      return undefined
    }
    type('u')
    await setImmediate()
    expect(port.last.order).toMatchObject({ direction: 'up', hosts: ['m3'], areas: ['nfs'] })
  })

  it('does nothing with a hosts.yaml that cannot be read, and says why', async () => {
    const { type, port, console } = await openTab(120, 40)
    const { checks } = port
    console.readFiles = async () => 'cannot reload hosts.yaml, line 10: no }'
    for (const key of ['u', 'd', 'r']) {
      console.change(() => ({ notice: undefined }))
      type(key)
      await setImmediate()
      expect(console.state.notice).toMatchObject({ tone: 'error', text: 'cannot reload hosts.yaml, line 10: no }' })
    }
    expect([port.changes, port.checks]).toEqual([[], checks])
  })

  it('applies nothing for a word with these letters, such as ready', async () => {
    const { type, port, console } = await openTab(120, 40)
    type('d')
    await setImmediate()
    const { handlers } = port.last
    handlers.onPlan(planOf('m1', 'm2'), false)
    let hasAgreed = false
    void handlers.confirm(planOf('m1', 'm2')).then(() => (hasAgreed = true))
    type('yy')
    await setImmediate()
    expect([hasAgreed, console.state.bringUp.change?.phase]).toEqual([false, 'ask'])
    expect(console.state.notice?.text).toBe('y may be the rest of a word: press it again')
  })

  it('applies a plan after it has looked at hosts.yaml once more', async () => {
    const { type, port, console } = await openTab(120, 40)
    let reads = 0
    console.readFiles = async () => {
      reads++
      return undefined
    }
    type('u')
    await setImmediate()
    const { handlers } = port.last
    handlers.onPlan(planOf('m1', 'm2'), false)
    const agreed = handlers.confirm(planOf('m1', 'm2'))
    type('y')
    expect([await agreed, reads > 0]).toEqual([true, true])
    expect(console.state.bringUp.change?.phase).toBe('lock')
  })

  it.each(SIZES)('shows the status of each host in words, on %i×%i', async (columns, rows) => {
    const { text, header } = await openTab(columns, rows)
    expect(text()).toMatch(/host +trust +nfs/)
    expect(text()).toMatch(/m1 +✓ good +- +0 s ago/)
    expect(text()).toMatch(/m2 +\+ missing +-/)
    expect(text()).toMatch(/m3 +\? no answer/)
    expect(header()).toMatch(/BRING-UP · hosts get no keys.* 1 .*2.* 6/)
  })

  it.each(
    SIZES,
  )('shows the reason beside or below the table, and what the other hosts have, on %i×%i', async (columns, rows) => {
    const { type, port, text, console } = await openTab(columns, rows)
    const nowMs = console.clock.now()
    const missing = ['m1', 'm2'].map((host) => ({ ...statusOf(host, 'missing', nowMs), because: ['SSH key: missing'] }))
    port.statuses = [...missing, { ...statusOf('m3', 'differs', nowMs), because: ['SSH key: another one'] }]
    type('r')
    await setImmediate()
    expect(text()).toMatch(/m1 +\+ missing/)
    expect(text()).toMatch(/ m1 · trust *\n \+ missing/)
    expect(text()).toContain('· SSH key: missing')
    type('/m3')
    type('\r')
    expect(text()).toMatch(/^▸ {2}m3 +~ differs/m)
    type('/x\r')
    expect(text()).toContain('no host matches “m3x”')
    type('\x1b')
    if (rows === 24) return
    expect(text()).toMatch(/m\[1-2\]: \+ missing/)
    type('g')
    expect(text()).toContain('the same on m2')
    expect(text()).toMatch(/m3: ~ differs *\n *· SSH key: another one/)
  })

  it('has room for four areas on 80×24', async () => {
    const { type, port, text } = await openTab()
    port.columns = ['trust', 'env', 'nfs', 'ray'].map((name) => ({ name, hosts: name === 'nfs' ? undefined : ['m1'] }))
    type('r')
    await setImmediate()
    expect(text()).toMatch(/m1 +✓ good +\? unknown +- +\? unknown +0 s ago/)
    // A host with an area that was not checked is not counted as good.
    expect(text()).toMatch(/\? 1 unknown/)
    expect(text()).not.toMatch(/✓ \d good/)
  })

  it('has whole words on 80×24 beside areas that nothing declares', async () => {
    const tab = await openTab()
    const declared = ['trust', 'nfs', 'env', 'ray', 'slurm'].map((name) => ({ name, hosts: ['m1', 'm2'] }))
    tab.port.columns = [...declared, { name: 'packages', hosts: undefined }, { name: 'k8s', hosts: undefined }]
    tab.port.statuses = declared.map(({ name }) => ({ ...statusOf('m1', 'missing', 0), area: name }))
    tab.type('r')
    await setImmediate()
    expect(tab.text()).toMatch(/m1 +(\+ missing ){5}/)
    tab.type('lllt')
    expect(tab.text()).toMatch(/ ray only /)
  })

  it('shows the end of host names that are too long', async () => {
    const { type, port, text } = await openTab()
    const hosts = ['a-very-long-name-of-a-machine-1', 'a-very-long-name-of-a-machine-2']
    port.columns = [{ name: 'trust', hosts }]
    type('r')
    await setImmediate()
    expect(text()).toMatch(/a-very-long-na…achine-1 .*\n.*a-very-long-na…achine-2 /)
  })

  it('checks the hosts when it is first opened, and then on demand', async () => {
    const { type, port } = await openTab()
    type(`1${LEADER}2`)
    await setImmediate()
    expect(port.checks).toBe(1)
    type('r')
    await setImmediate()
    expect(port.checks).toBe(2)
  })

  it('shows the age of the oldest fact, and in the header its time', async () => {
    const { clock, text, header } = await openTab(240, 67)
    const time = timeText(clock.now(), clock.now())
    clock.advance(12_000)
    expect(text()).toContain('12 s ago')
    expect(header()).toContain(`bring-up checked ${time} `)
  })

  it('drops the age of facts from the header before the names of the tabs', async () => {
    const { clock, header } = await openTab(112, 40)
    clock.advance(12_000)
    expect(header()).not.toContain(' old ')
    expect(header()).toContain(' 1 Shells  2 Bring-up  3 Network  4 Packing  5 Jobs  6 Log ')
  })

  it.each(
    SIZES,
  )('says that a host that is not open in the console was not checked, on %i×%i', async (columns, rows) => {
    const { type, port, text, clock } = await openTab(columns, rows)
    port.columns = [{ name: 'trust', hosts: ['m1', 'm2', 'm3', 'm4'] }]
    port.statuses = [...port.statuses, statusOf('m4', 'unasked')]
    type('r')
    await setImmediate()
    clock.advance(5_000)
    expect(text()).toMatch(/· 1 not checked/)
    expect(text()).toMatch(/m1 +✓ good +5 s ago/)
    expect(text()).toMatch(/m4 +· not checked *(?:$|│|\n)/m)
    type('G\r')
    expect(text().replace(/\s+/g, ' ')).toContain(
      'm4 is not open in the console, so it was not checked. Press + after the leader to add it',
    )
  })

  it('shows the last check of each host in the table, and the oldest one above it', async () => {
    const { type, port, text, clock } = await openTab(120, 40)
    const thenMs = clock.now()
    port.columns = [
      { name: 'trust', hosts: ['m1'] },
      { name: 'nfs', hosts: ['m1'] },
    ]
    port.statuses = [{ ...statusOf('m1', 'good', thenMs), area: 'nfs' }, statusOf('m1', 'good', thenMs + 60_000)]
    clock.advance(63_000)
    type('r')
    await setImmediate()
    expect(text()).toMatch(/m1 +✓ good +✓ good +3 s ago/)
    expect(text()).toContain('oldest 1 min ago')
  })

  it('checks again after a plan with nothing to do, so that the ages are current', async () => {
    const { type, port } = await openTab()
    type('u')
    port.last.ended.resolve({ kind: 'unchanged' })
    await setImmediate()
    expect(port.checks).toBe(2)
  })

  it('makes a plan during a check without waiting for it', async () => {
    const { type, port, text, clock } = await openTab(120, 40)
    clock.advance(5_000)
    port.holdsLooks = true
    type('r')
    await setImmediate()
    const { checks, releaseLooks } = port
    type('d')
    expect(port.last.order).toMatchObject({ direction: 'down', areas: ['trust'] })
    port.last.ended.resolve({ kind: 'declined' })
    await setImmediate()
    // It is made up for. Answers to the cancelled check are ignored.
    expect(port.checks).toBe(checks + 1)
    port.statuses = [statusOf('m1', 'missing', clock.now())]
    releaseLooks()
    await setImmediate()
    expect(text()).toMatch(/m1 +✓ good/)
  })

  it('shows what to declare when nothing is declared', async () => {
    const { type, port, text, footer, console } = await openTab()
    port.columns = [{ name: 'trust', hosts: undefined }]
    port.file = 'lab.yaml'
    type('r')
    await setImmediate()
    expect(text()).toContain('lab.yaml declares nothing to bring up')
    // The whole text, and no details of a table that is not there.
    expect(text()).toContain('trust: { mesh: "@all" }')
    expect(text()).not.toMatch(/m1 · |not declared/)
    // No table to filter or sort, either.
    expect(footer()).not.toMatch(/\/ filter|> sort/)
    type('u')
    expect(port.changes).toEqual([])
    expect(footer()).toMatch(/r refresh/)
    expect(footer()).not.toMatch(/bring up|take down|mark|details/)
    type('\r')
    expect(console.state.bringUp.hasSideKeys).toBe(false)
  })

  it('shows the plan, and changes nothing without confirmation', async () => {
    const { type, port, text, got } = await openTab()
    type('u')
    expect(port.last.order).toMatchObject({ direction: 'up', areas: ['trust'], hosts: ['m1', 'm2', 'm3'] })
    port.last.handlers.onPlan(planOf('m1', 'm2'), false)
    const agreed = port.last.handlers.confirm(planOf('m1', 'm2'))
    expect(text()).toContain('4 steps on m[1-2]')
    expect(text()).toContain('+ ~/.ssh/id_muster')
    type('\x1b')
    expect(await agreed).toBe(false)
    port.last.ended.resolve({ kind: 'declined' })
    await setImmediate()
    expect(text()).toMatch(/m2 +\+ missing/)
    expect(got('m1')).toBe('')
  })

  it('discards the plan when a command is typed by mistake, before and after the plan is shown', async () => {
    const { type, port, console } = await openTab()
    type('u')
    type('d')
    expect([port.last.order.signal.aborted, console.state.notice?.text]).toEqual([
      true,
      'plan discarded: d does not apply it',
    ])
    port.last.ended.resolve({ kind: 'cancelled' })
    await setImmediate()
    type('u')
    port.last.handlers.onPlan(planOf('m1'), false)
    const agreed = port.last.handlers.confirm(planOf('m1'))
    type('sy')
    expect([await agreed, port.changes.length]).toEqual([false, 2])
  })

  it('acts on nothing that is typed after / beside the table, and keeps the plan', async () => {
    const { type, port, console } = await openTab()
    type('u')
    port.last.handlers.onPhase?.('check')
    port.last.handlers.onPlan(planOf('m1', 'm2'), false)
    void port.last.handlers.confirm(planOf('m1', 'm2'))
    type('/stop 1')
    expect(console.state.mode).toMatchObject({ dialog: { title: 'Nothing to search here', input: { text: 'stop 1' } } })
    type('\r')
    expect(console.state).toMatchObject({ tab: 'bring-up', mode: { kind: 'typing' }, bringUp: { side: 'plan' } })
    expect(console.state.bringUp.change?.phase).toBe('ask')
    type('/\r')
    expect(console.state.mode.kind).toBe('typing')
  })

  it('goes back to the table when c discards the plan', async () => {
    const { type, port, console } = await openTab()
    type('u')
    port.last.handlers.onPlan(planOf('m1'), false)
    void port.last.handlers.confirm(planOf('m1'))
    type('c')
    port.last.ended.resolve({ kind: 'declined' })
    await setImmediate()
    expect(console.state.bringUp).toMatchObject({ hasSideKeys: false, side: 'details' })
  })

  it('wraps long lines of the plan, indented', async () => {
    const { type, port, text } = await openTab()
    type('u')
    const plan = planOf('m1')
    const long = `+ ${'x'.repeat(60)} ${'y'.repeat(60)}`
    const verdict = { kind: 'steps', state: 'missing', steps: [{ ...stepOf('m1'), changes: [long] }] } as const
    port.last.handlers.onPlan({ ...plan, operations: plan.operations.map((each) => ({ ...each, verdict })) }, false)
    expect(text()).toMatch(/\n {5}\+ x{60}\n {7}y{60}\n/)
  })

  it('changes only the marked hosts, and one area', async () => {
    const { type, port, text } = await openTab()
    type('j ')
    expect(text()).toMatch(/^ ● m2 .*\n▸ {2}m3 /m)
    type('k')
    expect(text()).toMatch(/^▸● m2 .*\n {3}m3 /m)
    type('tu')
    expect(port.last.order).toMatchObject({ areas: ['trust'], hosts: ['m2'] })
  })

  it('counts the marked hosts where these are all', async () => {
    const { type, text } = await openTab()
    type('a')
    expect(text()).toMatch(/^ all \d marked /)
  })

  it('says for which marked hosts a change would be, also where a filter hides them', async () => {
    const { type, text, port } = await openTab()
    type('j ')
    type('/m1\r')
    expect(text()).toMatch(/^ only m2 /)
    expect(text()).not.toMatch(/● m2/)
    type('d')
    expect(port.last.order.hosts).toEqual(['m2'])
  })

  it('moves the limit to another area, and takes it away only there', async () => {
    const tab = await openTab(120, 40)
    tab.port.columns = ['trust', 'nfs'].map((name) => ({ name, hosts: ['m1', 'm2'] }))
    tab.type('r')
    await setImmediate()
    tab.type('t')
    expect(tab.footer()).toContain('t all areas')
    tab.type('l')
    expect(tab.footer()).toContain('t this area')
    tab.type('td')
    expect(tab.port.last.order.areas).toEqual(['nfs'])
    tab.port.last.ended.resolve({ kind: 'declined' })
    await setImmediate()
    tab.type('\x1b')
    tab.type('td')
    expect(tab.port.last.order.areas).toEqual(['trust', 'nfs'])
  })

  it('says that a plan is not ready yet, until it is, and that one is being applied', async () => {
    const { type, port, console } = await openTab()
    type('uy')
    expect(console.state.notice?.text).toBe('the plan is not ready yet')
    port.last.handlers.onPlan(planOf('m1'), false)
    const agreed = port.last.handlers.confirm(planOf('m1'))
    expect(console.state.notice).toBeUndefined()
    type('y')
    type('y')
    expect([await agreed, console.state.notice?.text]).toEqual([true, 'the plan is being applied already'])
  })

  it('forgets what failed where a later check finds all as declared', async () => {
    const { type, port, text, footer, clock } = await begun()
    const failed = { kind: 'failed', outcome: { kind: 'exit', code: 1 }, reason: 'disk full' } as const
    for (const host of ['m1', 'm2']) port.tell({ type: 'end', host, step: stepOf(host), end: failed, durationMs: 5 })
    port.last.ended.resolve({ kind: 'done', statuses: ['m1', 'm2'].map((host) => statusOf(host, 'missing', 0)) })
    await setImmediate()
    expect(footer()).toContain('r retry failed')
    type('\x1b')
    type('\r')
    expect(footer()).toContain('r refresh')
    type('\x1b')
    expect(text()).toMatch(/last change[\s\S]*disk full/)
    clock.advance(1000)
    port.statuses = ['m1', 'm2', 'm3'].map((host) => statusOf(host, 'good', clock.now()))
    type('r')
    await setImmediate()
    expect(text()).not.toContain('last change')
    type('o')
    expect(text()).toContain('disk full')
    expect(footer()).not.toContain('retry failed')
  })

  it('shows running steps with their output and failures, in printable characters', async () => {
    const { port, text, clock } = await begun()
    const [step, second] = [stepOf('m1'), stepOf('m2')]
    port.tell({ type: 'begin', host: 'm1', step })
    port.tell({ type: 'output', host: 'm1', step, stream: 'stdout', text: 'half a ' })
    port.tell({ type: 'output', host: 'm1', step, stream: 'stdout', text: 'line\x1b[2J\n' })
    clock.advance(100)
    expect(text()).toContain('half a line\\x1b[2J')
    expect(text()).toMatch(/m1 +… changing 0\/2/)
    for (const piece of [
      '(Reading ... \r(Reading ... 5%\r(Rea',
      'ding ... 10%',
      '\r(Reading ... 12 files)\r\nUnpacking\r\n',
    ])
      port.tell({ type: 'output', host: 'm1', step, stream: 'stdout', text: piece })
    clock.advance(100)
    expect(text()).toMatch(/^ +\(Reading \.\.\. 12 files\)\n +Unpacking$/m)
    expect(text()).not.toMatch(/\\x0d|5%|10%/)
    port.tell({ type: 'begin', host: 'm2', step: second })
    const end = { kind: 'failed', outcome: { kind: 'exit', code: 1 }, reason: 'disk full' } as const
    port.tell({ type: 'end', host: 'm2', step: second, end, durationMs: 5 })
    clock.advance(100)
    expect(text()).toMatch(/✗ m2[\s\S]*✗ make a key failed: disk full[\s\S]*… m1/)
    expect(text()).toMatch(/m2 +✗ failed 0\/2/)
    expect(text()).toContain('0 of 4 steps done, 1 failed or not started')
  })

  it('says in its footer what Enter does in the view of steps', async () => {
    const { type, footer } = await begun()
    expect(footer()).toContain('Enter all output')
    type('\r')
    expect(footer()).toContain('Enter short form')
  })

  it('ends with the new status, and retries failed hosts', async () => {
    const { type, port, text, console } = await begun()
    const end = { kind: 'done' } as const
    for (const word of ['make', 'spread']) {
      port.tell({ type: 'end', host: 'm1', step: stepOf('m1', word), end, durationMs: 5 })
    }
    const failed = { kind: 'failed', outcome: { kind: 'exit', code: 1 }, reason: 'disk full' } as const
    port.tell({ type: 'end', host: 'm2', step: stepOf('m2'), end: failed, durationMs: 5 })
    port.last.ended.resolve({ kind: 'done', statuses: [statusOf('m1', 'good', 0), statusOf('m2', 'missing', 0)] })
    await setImmediate()
    expect(text()).toMatch(/m1 +✓ good/)
    expect(text()).toMatch(/m2 +✗ failed/)
    const said = 'bring up trust: 2 of 4 steps done, 1 failed or not started'
    expect(console.state.log.at(-1)).toMatchObject({ text: said, tone: 'warning' })
    type('r')
    expect(port.changes).toHaveLength(2)
    expect(port.last.order).toMatchObject({ direction: 'up', areas: ['trust'], hosts: ['m2', 'm3'] })
  })

  it('has among the details the last change that began, not a plan that was discarded', async () => {
    const { type, port, text } = await begun()
    for (const word of ['make', 'spread'])
      port.tell({ type: 'end', host: 'm1', step: stepOf('m1', word), end: { kind: 'done' }, durationMs: 5 })
    port.last.ended.resolve({ kind: 'done', statuses: [] })
    await setImmediate()
    type('\x1b')
    expect(text()).toMatch(/last change[\s\S]*✓ make a key/)
    type('d')
    port.last.handlers.onPlan(planOf('m1'), false)
    void port.last.handlers.confirm(planOf('m1'))
    type('\x1b')
    port.last.ended.resolve({ kind: 'declined' })
    await setImmediate()
    type('\x1b')
    expect(text()).toMatch(/last change[\s\S]*✓ make a key/)
    type('o')
    expect(text()).toMatch(/2 of 2 steps/)
  })

  it('calls nothing good that it has taken away, when a plan ends the check after it, and checks again after that plan', async () => {
    const { type, port, text } = await begun('d')
    for (const word of ['make', 'spread'])
      for (const host of ['m1', 'm2'])
        port.tell({ type: 'end', host, step: stepOf(host, word), end: { kind: 'done' }, durationMs: 5 })
    port.holdsLooks = true
    port.last.ended.resolve({ kind: 'done' })
    await setImmediate()
    const { checks } = port
    type('\x1b')
    type('u')
    expect(port.changes).toHaveLength(2)
    port.last.handlers.onPlan(planOf('m1'), false)
    void port.last.handlers.confirm(planOf('m1'))
    expect(text()).toMatch(/m1 +\?/)
    type('\x1b')
    port.last.ended.resolve({ kind: 'declined' })
    await setImmediate()
    expect(text()).toMatch(/m1 +\? unknown/)
    expect(port.checks).toBe(checks + 1)
  })

  it('says at the end on which hosts it was blocked', async () => {
    const { type, port, text, console } = await openTab(120, 40)
    type('u')
    const { handlers } = port.last
    const finding = { host: 'm3', gravity: 'blocker', id: 'away', cause: 'not connected' } as const
    const away: Operation = { ...operationOf('m3'), verdict: { kind: 'blocked', findings: [finding] } }
    handlers.onPlan({ direction: 'up', operations: [operationOf('m1'), away] }, false)
    void handlers.confirm(planOf('m1'))
    type('y')
    handlers.onPhase?.('apply')
    for (const word of ['make', 'spread'])
      port.tell({ type: 'end', host: 'm1', step: stepOf('m1', word), end: { kind: 'done' }, durationMs: 5 })
    port.last.ended.resolve({ kind: 'done', statuses: [] })
    await setImmediate()
    const said = '2 of 2 steps done; blocked on m3'
    expect(text()).toContain(said)
    expect(console.state.log.at(-1)).toMatchObject({ text: `bring up trust: ${said}`, tone: 'warning' })
  })

  it('marks and counts what may fail though it is good', async () => {
    const { type, port, text } = await openTab(120, 40)
    const risk = { host: 'm2', area: 'trust', gravity: 'risk', cause: 'it is drained' } as const
    const findings = [
      { ...risk, id: 'drained' },
      { ...risk, id: 'note', gravity: 'note' as const },
    ]
    port.statuses = ['m1', 'm2', 'm3'].map((host) => statusOf(host, 'good', 0))
    port.statuses = port.statuses.map((status) => (status.host === 'm2' ? { ...status, findings } : status))
    type('r')
    await setImmediate()
    expect(text()).toMatch(/m1 +✓ good +- +\d+ min/)
    expect(text()).toMatch(/m2 +✓ good, 1 risk +- +\d+ min/)
    expect(text()).toMatch(/✓ 3 good +1 risk +oldest/)
    type('>>')
    expect(text()).toMatch(/✓ good, 1 risk[\s\S]*m1 +✓ good/)
  })

  it('names what is as declared and does not work, in the plan and at the end', async () => {
    const { type, port, text, console } = await openTab(120, 40)
    const fix = { where: 'here', command: 'resume it' } as const
    const cause = 'it takes no new jobs'
    const finding = { host: 'm3', area: 'trust', gravity: 'blocker', id: 'drained', cause, fix } as const
    const failed = { ...statusOf('m3', 'failed', 0), findings: [finding] }
    const good = ['m1', 'm2'].map((host) => statusOf(host, 'good', 0))
    const problem = /✗ trust · m3: it takes no new jobs \(here: resume it\)/
    const idle = { kind: 'nothing', because: 'it is so' } as const
    port.statuses = [...good, failed]
    type('r')
    await setImmediate()
    type('u')
    port.last.handlers.onPlan({ direction: 'up', operations: [{ ...operationOf('m3'), verdict: idle }] }, false)
    port.last.ended.resolve({ kind: 'unchanged' })
    await setImmediate()
    expect(text()).toMatch(/Nothing to change\.\s+m3: not working, marked ✗/)
    expect(text()).toMatch(problem)
    expect(console.state.log.at(-1)).toMatchObject({
      text: 'bring up trust: no change; not working: m3',
      tone: 'warning',
    })
    type('u')
    port.last.handlers.onPlan(planOf('m1'), false)
    const agreed = port.last.handlers.confirm(planOf('m1'))
    expect(text()).toMatch(problem)
    type('y')
    expect(await agreed).toBe(true)
    port.last.handlers.onPhase?.('apply')
    for (const word of ['make', 'spread'])
      port.tell({ type: 'end', host: 'm1', step: stepOf('m1', word), end: { kind: 'done' }, durationMs: 5 })
    port.last.ended.resolve({ kind: 'done', statuses: [...good, failed] })
    await setImmediate()
    expect(text()).toContain('2 of 2 steps done; not working: m3')
    expect(text()).toMatch(problem)
  })

  it.each(SIZES)('keeps the plan in view below many messages, on %i×%i', async (columns, rows) => {
    const { type, port, text } = await openTab(columns, rows)
    type('d')
    port.last.handlers.onPlan({ ...planOf('m1'), direction: 'down' }, false)
    for (let id = 1; id <= 60; id += 1) port.last.handlers.onSay(`job ${id} runs on m1`, false)
    void port.last.handlers.confirm(planOf('m1'))
    expect(text()).toContain('job 1 runs on m1')
    type('G')
    expect(text()).toContain('+ ~/.ssh/id_muster')
    expect(text()).toContain('y applies it, Esc discards it')
  })

  it('says in the plan which steps cannot start, since they wait for what is blocked', async () => {
    const { type, port, text } = await openTab(120, 40)
    type('u')
    const operations = planOf('m1', 'm2').operations.map((operation, index): Operation => {
      const finding = { host: 'm1', gravity: 'blocker', id: 'x', cause: 'no disk' } as const
      return index === 0
        ? { ...operation, verdict: { kind: 'blocked', findings: [finding] } }
        : { ...operation, after: ['trust/key@m1'] }
    })
    port.last.handlers.onPlan({ direction: 'up', operations: [...operations, operationOf('m3')] }, false)
    expect(text()).toMatch(/^ 2 of 4 steps on m\[2-3\]$/m)
    expect(text()).toMatch(/^ 1 operation blocked, marked !; 2 steps cannot start without it$/m)
  })

  it('does not offer to apply a plan of which nothing can start, and names only areas of its hosts', async () => {
    const { type, port, text, console } = await openTab(120, 40)
    port.columns = ['trust', 'nfs'].map((name) => ({ name, hosts: ['m1', 'm2', 'm3'] }))
    type('r')
    await setImmediate()
    type('u')
    expect(text()).toContain('Bring up trust, nfs on m[1-3]')
    const finding = { host: 'm1', gravity: 'blocker', id: 'x', cause: 'no disk' } as const
    const [first, ...others] = planOf('m1', 'm2').operations.map((operation) => ({ ...operation, area: 'nfs' }))
    if (first === undefined) throw new Error('no operation')
    const operations: Operation[] = [
      { ...first, verdict: { kind: 'blocked', findings: [finding] } },
      ...others.map((operation) => ({ ...operation, after: [first.id] })),
    ]
    port.last.handlers.onPlan({ direction: 'up', operations }, false)
    port.last.ended.resolve({ kind: 'unchanged' })
    await setImmediate()
    expect(text()).toMatch(/^ Nothing to apply: 1 operation blocked, marked !; 2 steps cannot start without it$/m)
    expect(text()).toContain('Bring up nfs on m[1-3]')
    expect(text()).not.toContain('y applies it')
    expect(console.state.log.at(-1)?.text).toBe('bring up nfs: no change; blocked on m1')
  })

  it('cancels a change, and checks the hosts again', async () => {
    const { type, port, text, header } = await begun('d')
    expect(port.last.order.direction).toBe('down')
    type('c')
    expect(port.last.order.signal.aborted).toBe(true)
    port.last.ended.resolve({ kind: 'cancelled' })
    await setImmediate()
    expect(port.checks).toBe(2)
    expect(text()).toContain('cancelled: 0 of 4 steps done')
    expect(header()).toContain('BRING-UP')
  })

  it('says before a host is closed that the change ends on all hosts', async () => {
    const { type, port, console } = await begun()
    type('1')
    type(`${LEADER}x`)
    const hosts = foldHostSet(port.last.order.hosts)
    expect(port.last.order.hosts.length).toBeGreaterThan(1)
    expect(console.state.mode).toMatchObject({ dialog: { title: 'Close m1?' } })
    expect(JSON.stringify(console.state.mode)).toContain(`This also ends bring-up on ${hosts}.`)
  })

  it('says why an error stopped a change, and shows no step as running then', async () => {
    const { port, text, clock, console } = await begun()
    port.tell({ type: 'begin', host: 'm1', step: stepOf('m1') })
    clock.advance(2_000)
    port.last.ended.reject(new Error('no space in the journal'))
    await setImmediate()
    expect(text()).toMatch(/stopped: 0 of 4 steps done, 1 failed or not started\s+no space in the journal/)
    expect(text()).toContain('✗ make a key: cancelled')
    expect(console.state.log.at(-1)?.text).toBe('bring up trust: stopped: no space in the journal')
  })

  it('quits without a question while a plan is only shown', async () => {
    const { type, port, quits } = await openTab()
    type('u')
    port.last.handlers.onPlan(planOf('m1'), false)
    void port.last.handlers.confirm(planOf('m1'))
    type(`${LEADER}q`)
    expect(quits()).toBe(1)
  })

  it('asks before the console closes during a change', async () => {
    const { type, quits, console } = await begun()
    type(`${LEADER}q`)
    expect([quits(), console.dialogs.current?.view({ columns: 80, rows: 24 }).title]).toEqual([
      0,
      'Quit and end bring-up?',
    ])
    type('y')
    expect(quits()).toBe(1)
  })

  it('filters by host and status, sorts by the severity of an area, and changes only the hosts that are shown', async () => {
    const { type, text, port, console } = await openTab()
    const order = () => [...text().matchAll(/^[ ▸][ ●] (m\d)/gm)].map(([, host]) => host)
    type('/xyzzy')
    expect(text()).toContain('no host matches “xyzzy”')
    type('\ru')
    expect(console.state.notice?.text).toBe('no host matches “xyzzy”: Esc clears the filter')
    type('\x1b')
    expect(order()).toEqual(['m1', 'm2', 'm3'])
    type('>>')
    expect(text()).toContain('trust▴')
    expect(order()).toEqual(['m3', 'm2', 'm1'])
    type('I')
    expect(order()).toEqual(['m1', 'm2', 'm3'])
    type('/missing')
    expect(order()).toEqual(['m2'])
    type('\r')
    type('u')
    expect(port.last.order).toMatchObject({ hosts: ['m2'] })
  })

  it('keeps the selected row while a filter matches nothing, and neither marks nor opens it then', async () => {
    const { type, text } = await openTab()
    type('j/xyzzy\r')
    type(' \r')
    expect(text()).not.toMatch(/^ host +m2/m)
    type('\x1b')
    expect(text()).toMatch(/^▸ {2}m2 /m)
    expect(text()).not.toContain('●')
  })

  it('shows the current keys in its footer', async () => {
    const { type, footer, port } = await openTab()
    expect(footer()).toMatch(/u bring up.*r refresh/)
    expect(footer()).not.toContain('y apply')
    type('u')
    port.last.handlers.onPlan(planOf('m1'), false)
    void port.last.handlers.confirm(planOf('m1'))
    expect(footer()).toMatch(/y apply/)
  })

  it('says why hosts.yaml cannot be read', async () => {
    const port = new FakeBringUp()
    port.areas = async () => {
      throw new Error('hosts.yaml:3:1: no')
    }
    const { type, console } = createConsoleHarness({ hosts: ['m1'], size: { columns: 80, rows: 24 }, bringUp: port })
    type(`${LEADER}2`)
    await setImmediate()
    const rows = console.page?.panes(areaOf(console.state), themes.none)[0]?.notice ?? []
    expect(rows.flat().map(({ text }) => text)).toContain('  hosts.yaml:3:1: no')
  })
})
