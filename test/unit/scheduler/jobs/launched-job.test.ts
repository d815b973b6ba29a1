/** The life of a job with a launcher: what its bundles tell, when it is done, and who failed first. */
import { describe, expect, it } from 'vitest'
import { parseHostAnswer } from '../../../../src/scheduler/jobs/host-program.ts'
import { isActive, type Job, type JobEvent, type JobSpec, transition } from '../../../../src/scheduler/jobs/job.ts'
import { launchEvent, ordersFor } from '../../../../src/scheduler/jobs/orders.ts'
import { testJob } from '../../../support/test-job.ts'

const jobOf = (launch: Partial<JobSpec['launch']> & { kind: string }, rest: Partial<JobSpec> = {}): Job =>
  testJob({ bundles: 2, launch: { options: {}, ports: [46_000, 46_099], ...launch }, ...rest })

const ADDRESSES = new Map([
  ['a', '10.81.0.1'],
  ['b', '10.81.0.2'],
])
const placed: JobEvent = { kind: 'placed', places: [...ADDRESSES.keys()].map((host) => ({ host, devices: [] })) }
const said = (rank: number, facts: Record<string, string>): JobEvent => ({ kind: 'said', rank, said: facts, ranks: [] })
const begun = (rank: number): JobEvent => ({ kind: 'seen', rank, bundle: { kind: 'begun' } })
const ended = (rank: number, code: number): JobEvent => ({
  kind: 'seen',
  rank,
  bundle: { kind: 'ended', end: { kind: 'exit', code }, beganMs: 0, ranMs: 1000 },
})

const lifeOf = (first: Job, ...events: readonly JobEvent[]): Job =>
  events.reduce((job, event, index) => transition(job, event, index), first)
const factsOf = ({ state }: Job, rank: number) => (isActive(state) ? state.bundles[rank]?.said : undefined)

describe('what a bundle tells', () => {
  it('is kept once, and decides the next order', () => {
    const job = lifeOf(jobOf({ kind: 'torchrun' }), placed)
    const kinds = (one: Job) => ordersFor(one, 'q', ADDRESSES, 0).map(({ order }) => order.kind)
    expect(kinds(job)).toEqual(['ask', 'ask'])
    const answered = lifeOf(job, said(0, { answered: '1', port: '46007' }), said(0, { port: '1' }))
    expect(factsOf(answered, 0)).toEqual({ answered: '1', port: '46007' })
    expect(kinds(answered)).toEqual(['ask'])
  })

  it('is bounded: a host that tells too much fails its job', () => {
    const many = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`agent.${index}`, 'x']))
    const job = lifeOf(jobOf({ kind: 'mpi' }), placed, said(0, many), said(0, many))
    expect(launchEvent(job, ADDRESSES)).toEqual({
      kind: 'refused',
      reason: 'a: it told more than the 512 facts that a job keeps',
    })
    expect(factsOf(lifeOf(job, said(1, { long: 'x'.repeat(5000) })), 1)).toBeUndefined()
  })

  it('cannot move the cursor of a terminal', () => {
    const text =
      'q-7-1-0 said why \u001b[2JError: \u202egood\nq-7-1-0 said rank 1 0 1 5.5 \u001b]0;x\u0007ValueError: bad\n'
    const news = parseHostAnswer(text).said.get('q-7-1-0')
    expect(news?.facts.why).toBe('\\x1b[2JError: \\u202egood')
    expect(news?.ranks).toMatchObject([{ rank: 1, code: 1, text: '\\x1b]0;x\\x07ValueError: bad' }])
  })

  it('is ignored where it is no answer to a launcher', () => {
    const plain = jobOf({ kind: 'mpi' })
    const { launch: _, ...spec } = plain.spec
    expect(factsOf(lifeOf({ ...plain, spec }, placed, said(0, { answered: '1' })), 0)).toBeUndefined()
  })
})

describe('a launched job', () => {
  it('is done when its leaders are, and stops the others', () => {
    const job = lifeOf(jobOf({ kind: 'tf' }, { leaders: [0] }), placed, begun(0), begun(1), ended(0, 0))
    expect(job.state).toMatchObject({ kind: 'ending', stop: 'finished' })
    expect(lifeOf(job, ended(1, 143)).state.kind).toBe('done')
  })

  it('fails with its reason when it cannot begin, and its bundles never do', () => {
    const job = lifeOf(jobOf({ kind: 'torchrun' }), placed, said(1, { refuse: 'torchrun is not in PATH' }))
    const event = launchEvent(job, ADDRESSES)
    expect(event).toEqual({ kind: 'refused', reason: 'b: torchrun is not in PATH' })
    const barred = (rank: number): JobEvent => ({
      kind: 'seen',
      rank,
      bundle: { kind: 'ended', end: { kind: 'barred' } },
    })
    const ending = lifeOf(job, event as JobEvent)
    expect(ordersFor(ending, 'q', ADDRESSES, 0).map(({ order }) => order.kind)).toEqual(['stop', 'stop'])
    expect(lifeOf(ending, barred(0), barred(1)).state).toMatchObject({
      kind: 'failed',
      reason: 'b: torchrun is not in PATH',
    })
  })

  it('is ready when its service answers, at the address that Muster knows', () => {
    const running = lifeOf(jobOf({ kind: 'vllm', options: { tp: '2' } }), placed, begun(0), begun(1))
    expect(launchEvent(running, ADDRESSES)).toBeUndefined()
    const told = lifeOf(running, said(0, { port: '46003 46004 46005', ready: 'http://elsewhere/' }))
    expect(launchEvent(told, ADDRESSES)).toEqual({ kind: 'ready', endpoint: 'http://10.81.0.1:46003/v1' })
    const ready = lifeOf(told, launchEvent(told, ADDRESSES) as JobEvent)
    expect(launchEvent(ready, ADDRESSES)).toBeUndefined()
    expect(ready.state).toMatchObject({ kind: 'running', endpoint: 'http://10.81.0.1:46003/v1' })
  })
})
