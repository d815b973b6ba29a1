/**
 * Watches all pods as the pictures do, and prints a line of JSON for each change: how many pods there are, whether there is trouble,
 * how many requests were made, and how much memory is in use after everything unused was freed.
 */
import { systemClock } from '../../../src/base/clock.ts'
import { apiPath } from '../../../src/ops/kubernetes/api.ts'
import { openKubernetes } from '../../../src/ops/kubernetes/kubernetes.ts'
import { podOf } from '../../../src/ops/kubernetes/usage.ts'
import { watchObjects } from '../../../src/ops/kubernetes/watch.ts'

const abort = new AbortController()
const kubernetes = openKubernetes(
  { context: process.argv[2] ?? '' },
  { clock: systemClock, environment: process.env, signal: abort.signal },
)
const { api } = kubernetes
let requests = 0
const { request, stream } = { request: api.request.bind(api), stream: api.stream.bind(api) }
api.request = (...args) => {
  requests += 1
  return request(...args)
}
api.stream = (...args) => {
  requests += 1
  return stream(...args)
}
let trouble: string | undefined
const print = (pods: number): void => {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  process.stdout.write(`${JSON.stringify({ pods, trouble, requests, bytes: heapUsed + arrayBuffers })}\n`)
}
let pods = 0
const watch = watchObjects(
  api,
  apiPath('v1', 'pods'),
  { project: (object) => podOf(object, 'nvidia.com/gpu'), clock: systemClock, random: Math.random },
  {
    onChange(all) {
      pods = all.size
      print(pods)
    },
    onTrouble(refusal) {
      trouble = refusal?.message
      print(pods)
    },
  },
)
process.stdin.resume().once('end', () => {
  watch[Symbol.dispose]()
  kubernetes[Symbol.dispose]()
})
