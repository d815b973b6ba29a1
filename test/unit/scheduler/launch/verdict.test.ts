import { describe, expect, it } from 'vitest'
import { type Failure, formatFirstFailure, isPortTaken } from '../../../../src/scheduler/launch/verdict.ts'

const GLOO = 'RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [10.81.0.2]:57472'
const BAD = 'ValueError: bad batch'

const rank = (number: number, atMs: number, text?: string, more: Partial<Failure> = {}): Failure => ({
  title: `rank ${number}`,
  bundle: number,
  host: `m${number + 1}`,
  code: 1,
  endedMs: 1_000_000 + atMs,
  errorMs: 3,
  text,
  isLauncher: false,
  ...more,
})

describe('the first failure of a job', () => {
  it('is the rank whose words are no consequence, although another one ended before it', () => {
    expect(formatFirstFailure([rank(0, 0, GLOO), rank(1, 400, BAD)])).toBe(
      'rank 1 on m2 failed first: exit 1: ValueError: bad batch',
    )
    expect(formatFirstFailure([rank(0, 1800, GLOO), rank(1, 0, BAD, { code: 134 })])).toBe(
      'rank 1 on m2 failed first: exit 134 (SIGABRT), 1.8 s before the others: ValueError: bad batch',
    )
  })

  it('is the earliest where all words are consequences, or the others came long after', () => {
    expect(
      formatFirstFailure([rank(0, 300, GLOO), rank(1, 0, 'ConnectionRefusedError: [Errno 111] Connection refused')]),
    ).toMatch(/^rank 1 on m2 failed first/)
    expect(formatFirstFailure([rank(0, 60_000, 'KeyError: 3'), rank(1, 0, 'TimeoutError: Socket Timeout')])).toMatch(
      /^rank 1 on m2 failed first: exit 1, 60.0 s before the others/,
    )
  })

  it('is not one that was ended by TERM, unless it had raised before', () => {
    const ended = (text?: string) => rank(1, 0, text, { code: 143, host: 'm1' })
    expect(formatFirstFailure([ended('step 3'), rank(0, 30, undefined, { code: 3 })])).toMatch(/^rank 0 on m1 .*exit 3/)
    expect(formatFirstFailure([ended(BAD), rank(0, -30, GLOO)])).toMatch(
      /^rank 1 on m1 failed first: exit 143 .SIGTERM.: Value/,
    )
  })

  it('names several within the error of the clocks of their hosts, and no more than that', () => {
    expect(formatFirstFailure([rank(0, 0, BAD, { errorMs: 30 }), rank(1, 35, BAD, { errorMs: 8 })])).toBe(
      'rank 0 on m1, rank 1 on m2 failed within 38 ms of each other: exit 1: ValueError: bad batch',
    )
    expect(formatFirstFailure([rank(0, 0, BAD, { host: 'm2', errorMs: 30 }), rank(1, 35, BAD, { errorMs: 30 })])).toBe(
      'rank 0 on m2 failed first: exit 1: ValueError: bad batch',
    )
    const many = Array.from({ length: 6 }, (_, index) => rank(index, 0, BAD))
    expect(formatFirstFailure(many)).toMatch(/^rank 0 on m1, .*rank 3 on m4 and 2 more failed within 20 ms/)
  })

  it('is a launcher only where no rank failed', () => {
    const launcher = { title: 'the torchrun launcher', isLauncher: true }
    expect(formatFirstFailure([rank(0, 0, 'ChildFailedError', launcher), rank(1, 900, BAD)])).toMatch(/^rank 1 on m2/)
    expect(formatFirstFailure([rank(0, 0, "AttributeError: 'NoneType'", launcher)])).toMatch(
      /^the torchrun launcher on m1/,
    )
    expect(formatFirstFailure([])).toBeUndefined()
  })

  it('is a launcher that was killed or failed before any rank did, and took its ranks with it', () => {
    const killed = { title: 'the torchrun launcher', isLauncher: true, code: 137, host: 'm2' }
    const ended = rank(2, 700, 'step 7', { host: 'm2', code: 143 })
    const failures = [rank(0, 500, GLOO), ended, rank(2, 0, undefined, killed)]
    expect(formatFirstFailure(failures)).toMatch(/^the torchrun launcher on m2 failed first: exit 137 .SIGKILL./)
    const lost = rank(2, 800, 'torch.RendezvousConnectionError: no host', { ...killed, code: 1 })
    expect(formatFirstFailure([ended, lost])).toMatch(/^the torchrun launcher on m2 failed first: exit 1/)
    expect(formatFirstFailure([rank(0, 500, GLOO), ended, lost])).toMatch(/^rank 0 on m1/)
  })

  it('is the one that Muster saw first, whatever clocks, exit codes and messages say', () => {
    const killed = rank(1, 500, GLOO, { code: 143, isSeenFirst: true })
    const others = [rank(0, 500, undefined, { code: 143, isStopped: true }), rank(2, 0, BAD)]
    expect(formatFirstFailure([...others, killed])).toBe(`rank 1 on m2 failed first: exit 143 (SIGTERM): ${GLOO}`)
  })

  it('may be a lost rank, which has no exit code and no time', () => {
    const { code: _, endedMs: __, ...lost } = rank(2, 0, 'the host rebooted')
    expect(formatFirstFailure([rank(0, 0, undefined, { code: 143 }), lost])).toBe(
      'rank 2 on m3 failed first: the host rebooted',
    )
    expect(formatFirstFailure([rank(0, 0, BAD), lost])).toBe(`rank 0 on m1 failed first: exit 1: ${BAD}`)
  })

  it.each([
    GLOO,
    'RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete',
    'torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, remote process exited or there was a network error, NCCL version 2.21.5',
    'torch.distributed.DistBackendError: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)',
    'torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (10.81.0.1, 29500).',
    'torch.distributed.DistStoreError: Socket Timeout',
    'torch.distributed.elastic.multiprocessing.api.SignalException: Process 631 got signal: 15',
    'RuntimeError: Broken pipe',
    'RuntimeError: Connection reset by peer',
    'tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: failed to connect to all addresses',
    'tensorflow.python.framework.errors_impl.CancelledError: CANCELLED',
    'horovod.common.exceptions.HorovodInternalError: Horovod has been shut down.',
  ])('is not a rank that says %s', (text) => {
    expect(formatFirstFailure([rank(0, 0, text), rank(1, 200, 'IndexError: 7')])).toMatch(/^rank 1 on m2/)
  })

  it('may be a port that another program took', () => {
    const torch1 =
      'RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).'
    const torch2 =
      'torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use'
    for (const text of [torch1, torch2]) expect(isPortTaken(text)).toBe(true)
    expect(isPortTaken('m1: cannot listen at 10.81.0.1 port 46007: [Errno 98] Address already in use')).toBe(true)
    expect(isPortTaken(BAD)).toBe(false)
  })
})
