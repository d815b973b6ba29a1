/** How often a cluster is drawn. */
import { expect, it } from 'vitest'
import { KubernetesApi, unreachable } from '../../../../src/ops/kubernetes/api.ts'
import { watchKubernetesUsage } from '../../../../src/ops/kubernetes/usage-watch.ts'
import { FakeApiServer, sendEvent, sendJson } from '../../../support/fake-api-server.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { ManualClock } from '../../../unit/ssh/manual-clock.ts'

it.each([
  { what: 'at most once a second', takesMs: 0, pauseMs: 1_000 },
  { what: 'less often if that takes long', takesMs: 500, pauseMs: 5_000 },
])('draws a cluster $what', async ({ takesMs, pauseMs }) => {
  using server = await FakeApiServer.start(({ query }, response) => {
    if (query.has('watch')) response.writeHead(200).flushHeaders()
    else sendJson(response, { metadata: { resourceVersion: '1' }, items: [] })
  })
  const clock = new ManualClock()
  const life = new AbortController()
  const api = new KubernetesApi(server.dial, clock, life.signal)
  const cluster = { api, namespace: async () => ({ ok: true, name: 'default' }) as const, [Symbol.dispose]() {} }
  const pictures: { readonly beganMs: number; readonly endedMs: number }[] = []
  using _watch = watchKubernetesUsage(cluster, { clock, gpuResource: 'x/gpu', random: () => 0.5 }, () => {
    const beganMs = clock.now()
    clock.set(takesMs)
    pictures.push({ beganMs, endedMs: clock.now() })
  })
  let version = 1
  await waitUntil(() => {
    version += 1
    const metadata = { name: `p${version}`, namespace: 'default', uid: `u${version}`, resourceVersion: `${version}` }
    for (const watch of server.watches) sendEvent(watch, 'ADDED', { metadata })
    clock.advance(250)
    return pictures.length >= 4
  }, 'four pictures')
  for (const [index, { beganMs }] of pictures.entries())
    if (index > 0) expect(beganMs - (pictures[index - 1]?.endedMs ?? 0)).toBeGreaterThanOrEqual(pauseMs)
  life.abort()
})

it('asks again when the kubeconfig, or the host that has it, could not be read at first', async () => {
  using server = await FakeApiServer.start(({ query }, response) => {
    if (query.has('watch')) response.writeHead(200).flushHeaders()
    else sendJson(response, { metadata: { resourceVersion: '1' }, items: [] })
  })
  const clock = new ManualClock()
  const life = new AbortController()
  let asked = 0
  const cluster = {
    api: new KubernetesApi(server.dial, clock, life.signal),
    async namespace() {
      asked += 1
      return asked === 1 ? unreachable('m10 is away') : ({ ok: true, name: 'default' } as const)
    },
    [Symbol.dispose]() {},
  }
  const seen: unknown[] = []
  using _watch = watchKubernetesUsage(cluster, { clock, gpuResource: 'x/gpu', random: () => 0.5 }, (usage) =>
    seen.push(typeof usage === 'string' ? usage : usage.nodes),
  )
  await waitUntil(() => seen.length === 1, 'why nothing is known')
  await waitUntil(() => {
    clock.advance(1_000)
    return seen.length > 1
  }, 'the picture')
  expect(seen.slice(0, 2)).toEqual(['m10 is away', []])
  life.abort()
})
