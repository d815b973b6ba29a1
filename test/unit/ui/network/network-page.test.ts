/** The Network tab over the console's own work port. */
import { expect, it } from 'vitest'
import { themes } from '../../../../src/ui/theme/theme.ts'
import type { WorkPort } from '../../../../src/ui/work-views/work-port.ts'
import { createStand } from '../console/stand.ts'

const LEADER = '\x1d'
const second = (up: number, busy: number) =>
  `${up}.00 1.00\ncpu  ${busy} 0 0 ${up * 100} 0 0 0 0\nMemTotal: 1000 kB\nMemAvailable: 400 kB\n=\n`

it('samples the hosts when it is first opened, shows what they say, and leads back to the shells', () => {
  const started = new Map<string, Parameters<WorkPort['startCommand']>>()
  const stopped: string[] = []
  const work: WorkPort = {
    startCommand(...order) {
      started.set(order[0], order)
      return { stop: () => stopped.push(order[0]), abandon() {}, pause() {}, resume() {} }
    },
    copy: async () => undefined,
    saveOutput: async () => '',
    fanOut: 64,
    spillDirectory: '',
  }
  const stand = createStand({ hosts: ['m1', 'm2'], work })
  const page = stand.console.pages.network
  const text = () =>
    page
      .panes({ column: 0, row: 1, width: 80, height: 22 }, themes.none)
      .flatMap(({ notice }) => notice.map((row) => row.map((span) => span.text).join('')))
      .join('\n')
  expect(started.size).toBe(0)
  stand.type(`${LEADER}3`)
  expect(stand.console.state.tab).toBe('network')
  expect([...started.keys()]).toEqual(['m1', 'm2'])
  expect(started.get('m1')?.[1]).toMatch(/^exec \/bin\/sh -c '[^']*'$/)
  expect(text()).toContain('waiting for the first seconds')
  const [, , m1] = started.get('m1') ?? []
  const [, , m2] = started.get('m2') ?? []
  m1?.onBegin()
  m1?.onStdout(Buffer.from(second(1, 0) + second(2, 100)))
  m2?.onEnd({ kind: 'unreachable', reason: 'no connection' })
  expect(text()).toMatch(/^ m1 +50% .*60%/m)
  expect(text()).toMatch(/^ m2 +unreachable: no connection$/m)
  stand.type('s')
  expect(stand.console.state.watch.view.sort).toBe('cpu')
  stand.type('\r')
  expect(stand.console.state.watch.view).toMatchObject({ isDetailed: true, selected: 'm1' })
  stand.type('qq')
  expect(stand.console.state.tab).toBe('shells')
  // What was seen goes on being kept; only the end of the console ends it.
  expect(stopped).toEqual([])
  expect(stand.fleet.received.get('m1')).toBeUndefined()
  stand.console[Symbol.dispose]()
  expect(stopped).toContain('m1')
})
