import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import type { KnownDashboard } from '../../../../src/ssh/forward/plan-forwards.ts'
import { parseForward, parseForwardLine } from '../../../../src/ui/forwards/parse-forward.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createConsoleHarness } from '../console/console-harness.ts'

const LEADER = '\x1d'

/** A port that is in use, so that another one is taken for it. */
async function usedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

function begin(known: readonly KnownDashboard[] = []) {
  const harness = createConsoleHarness({ knownDashboards: async () => known })
  onTestFinished(() => harness.console[Symbol.dispose]())
  const dialog = () => {
    const { mode } = harness.console.state
    return mode.kind === 'dialog' ? mode.dialog : undefined
  }
  const lines = () => dialog()?.lines.map(({ text }) => text) ?? []
  const shows = (pattern: RegExp) =>
    waitUntil(
      () => dialog()?.id === 'forwards' && pattern.test(lines().join('\n')),
      () => `${pattern} in ${JSON.stringify(dialog())}`,
    )
  return { harness, dialog, lines, shows }
}

it('adds a forward of the focused host, lists it, closes it, and counts it when the user quits', async () => {
  const { harness, dialog, lines, shows } = begin()
  const port = await usedPort()
  harness.type(`${LEADER}ta`)
  expect(dialog()?.title).toBe('Forward a port of m1')
  harness.type('\x1b')
  expect(dialog()?.id).toBe('forwards')
  harness.type('a')
  harness.type(`${port}:80`)
  expect(lines()).toEqual([`m1: 127.0.0.1:${port} → localhost:80`])
  harness.type('\r')
  await shows(/^m1 {2}127\.0\.0\.1:\d+ → localhost:80$/m)
  expect(harness.console.forwards.busyOn()).toEqual([{ title: '1 port forward', hosts: ['m1'] }])
  harness.type('\x1b')
  harness.type(`${LEADER}q`)
  expect(dialog()?.title).toBe('Quit and end 1 port forward?')
  harness.type('\x1b')
  harness.type(`${LEADER}tx`)
  await shows(/^None\./)
  expect(harness.console.state.notice?.text).toMatch(/^closed m1: http:\/\/127\.0\.0\.1:\d+\/ → localhost:80$/)
  expect(harness.console.forwards.busyOn()).toEqual([])
  expect(harness.got('m1')).toBe('')
})

it('counts no forward that its host refuses', async () => {
  const { harness, dialog } = begin()
  const refusing = { listenTcp: () => Promise.reject(new Error('the port is taken')) }
  const ready = { kind: 'ready', sinceMs: 0, attempt: 1 }
  Object.assign(harness.fleet, { connection: () => refusing, session: () => ready })
  harness.type(`${LEADER}ta`)
  harness.type('-R 9000:localhost:80')
  harness.type('\r')
  const told = () => harness.console.state.log.map(({ text }) => text).join('\n')
  await waitUntil(
    () => told().includes('the port is taken'),
    () => `${told()} ${JSON.stringify(dialog())}`,
  )
  expect(harness.console.forwards.busyOn()).toEqual([])
})

it('selects the forward that was just added', async () => {
  const { harness, dialog, shows } = begin()
  const selected = () => dialog()?.lines.find(({ isSelected }) => isSelected)?.text
  for (const port of [80, 81]) {
    const used = await usedPort()
    harness.type(`${LEADER}ta${used}:${port}\r`)
    await shows(new RegExp(`→ localhost:${port}$`, 'm'))
    expect(selected()).toContain(`→ localhost:${port}`)
    harness.type('\x1b')
  }
})

it('asks before it closes a forward with an open connection', async () => {
  const { harness, dialog, lines, shows } = begin()
  vi.spyOn(harness.fleet, 'session').mockReturnValue({ kind: 'ready', sinceMs: 0, attempt: 1 })
  vi.spyOn(harness.fleet, 'connection').mockReturnValue({ connectTcp: () => new Promise(() => {}) } as never)
  harness.type(`${LEADER}ta${await usedPort()}:80\r`)
  await shows(/→ localhost:80$/m)
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(lines().join())?.[1])
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await waitUntil(() => {
    harness.clock.advance(1000)
    return dialog()?.lines[0]?.right?.startsWith('1 open') === true
  }, 'the connection')
  harness.type('x')
  expect(dialog()?.title).toBe('Close this forward and its 1 connection?')
  harness.type('\x1b')
  await shows(/→ localhost:80$/m)
  harness.type('x')
  harness.type('y')
  await shows(/^None\./)
  expect(harness.console.forwards.busyOn()).toEqual([])
})

it('keeps what was typed when the port cannot be had, and says why', async () => {
  const { harness, dialog } = begin()
  const port = await usedPort()
  harness.type(`${LEADER}ta-L ${port}:db:80\r`)
  await waitUntil(() => dialog()?.input?.error !== undefined, 'the reason')
  expect(dialog()?.input).toMatchObject({
    text: `-L ${port}:db:80`,
    error: expect.stringContaining(`cannot listen on 127.0.0.1:${port} here: the port is in use`),
  })
})

it('finds a dashboard where it is known to be', async () => {
  const port = await usedPort()
  const at = { address: 'localhost', port }
  const { harness, lines, shows } = begin([{ name: 'tensorboard', host: 'm3', at, source: 'job 7' }])
  harness.type(`${LEADER}t`)
  await shows(new RegExp(`^m3  tensorboard at localhost:${port}, not forwarded$`, 'm'))
  harness.type('\x1b')
  harness.type(`${LEADER}:forward tensorboard`)
  expect(lines()).toEqual([`m3: 127.0.0.1:${port} → localhost:${port} (TensorBoard of job 7)`])
  harness.type('\x1b')
  harness.type(`${LEADER}t\r`)
  await shows(new RegExp(`^m3  127\\.0\\.0\\.1:\\d+ → localhost:${port} \\(TensorBoard of job 7\\)$`, 'm'))
  expect(lines().join()).not.toContain('not forwarded')
})

it('is filtered and sorted with the keys of every table, and Esc clears the filter first', async () => {
  const at = { address: 'localhost', port: 6006 }
  const { harness, dialog, lines, shows } = begin([
    { name: 'tensorboard', host: 'm3', at, source: 'job 7' },
    { name: 'ray', host: 'm1', at: { ...at, port: 8265 } },
    { name: 'tensorboard', host: 'm2', at, source: 'job 9' },
  ])
  const hosts = () => lines().flatMap((line) => /^m\d/.exec(line) ?? [])
  harness.type(`${LEADER}t`)
  await shows(/^m2 /m)
  expect(hosts()).toEqual(['m3', 'm1', 'm2'])
  harness.type('>')
  expect(dialog()?.title).toBe('Port forwards by HOST▴')
  expect(hosts()).toEqual(['m1', 'm2', 'm3'])
  expect(dialog()?.lines.find(({ isSelected }) => isSelected)?.text).toMatch(/^m3 /)
  harness.type('I')
  expect(hosts()).toEqual(['m3', 'm2', 'm1'])
  harness.type('/tensor !m3')
  expect(dialog()?.input).toMatchObject({ label: 'Filter:', text: 'tensor !m3' })
  expect(hosts()).toEqual(['m2'])
  harness.type(' x9\r')
  expect(lines()).toEqual(['no forward matches “tensor !m3 x9”'])
  harness.type('\x1b')
  expect(hosts()).toEqual(['m3', 'm2', 'm1'])
  harness.type('\x1b')
  expect(dialog()).toBeUndefined()
})

it('closes the forwards of a host that is removed', async () => {
  const { harness, shows } = begin()
  harness.type(`${LEADER}ta${await usedPort()}:80\r`)
  await shows(/^m1 /m)
  harness.console.removeHosts(['m1'])
  expect(harness.console.forwards.busyOn()).toEqual([])
})

it('reads hosts before a colon, or first as after muster forward', () => {
  const plain = { local: [], remote: [], dynamic: [] }
  expect(parseForward('8265')).toEqual({ target: undefined, words: { ...plain, plain: ['8265'] } })
  expect(parseForward('on @gpus,m1: 9000:80 ray')).toEqual({
    target: '@gpus,m1',
    words: { ...plain, plain: ['9000:80', 'ray'] },
  })
  expect(parseForwardLine('forward m8 -R 9000:localhost:80')).toEqual({
    target: 'm8',
    words: { ...plain, plain: [], remote: ['9000:localhost:80'] },
  })
  expect(parseForwardLine('forward jupyter ray')).toMatchObject({ target: undefined })
  expect(parseForwardLine('forwards')).toBeUndefined()
  expect(parseForward('on m8 8265')).toEqual({ error: 'add a colon after the hosts: on @gpus: 8265' })
})
