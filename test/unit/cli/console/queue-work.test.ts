import { expect, it } from 'vitest'
import { createQueueWork } from '../../../../src/cli/console/console-ops.ts'
import type { Endpoint } from '../../../../src/inventory/host.ts'
import type { CommandEnd } from '../../../../src/ops/run/run-hosts.ts'
import type { WorkPort } from '../../../../src/ui/work-views/work-port.ts'

const at = (address: string) => ({ host: 'm1', address }) as Endpoint

it('reads nothing of a job over a connection that leads to another machine than hosts.yaml says now', async () => {
  const done: CommandEnd = { kind: 'exit', code: 0 }
  const work = {
    startCommand(_host, _command, { onEnd }) {
      queueMicrotask(() => onEnd(done))
      return { stop() {}, abandon() {}, pause() {}, resume() {} }
    },
  } as WorkPort
  let declared = at('10.0.0.1')
  const own = createQueueWork(work, { fleet: { endpoint: () => at('10.0.0.1') }, endpoints: async () => [declared] })
  const read = () =>
    new Promise<CommandEnd>((resolve) => {
      const nothing = { onBegin() {}, onStdout() {}, onStderr() {} }
      own.startCommand('m1', 'cat log', { ...nothing, onEnd: resolve })
    })
  expect(await read()).toEqual(done)
  declared = at('10.0.0.3')
  await read()
  expect(await read()).toEqual({
    kind: 'unreachable',
    reason: 'it is connected to 10.0.0.1, and hosts.yaml now says 10.0.0.3: close it and add it again',
  })
})
