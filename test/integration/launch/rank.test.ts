/** The program that wraps each rank, under this machine's sh. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseRankEnd, RANK_PROGRAM } from '../../../src/scheduler/launch/rank.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = process.platform === 'linux' && requirement('awk', 'tail', 'tr', 'cut')

/** As torchrun of torch 1.13 leaves it in the file of rank 0: the rank's own words, then those of the agent. */
const TORCH_1 = `Traceback (most recent call last):
  File "train.py", line 12, in <module>
    if mode=='exc' and r==1 and i==2: raise ValueError('bad batch')
ValueError: bad batch`
const TORCH_2 = `[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 12, in <module>
[rank1]:     if mode=='exc' and r==1 and i==2: raise ValueError('bad batch')
[rank1]: ValueError: bad batch
terminate called without an active exception`
const CPP = `step 3
terminate called after throwing an instance of 'std::runtime_error'
  what():  out of tea`
const AGENT = `Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
  exitcode  : -11 (pid: 647)
  error_file: <N/A>
  traceback : Signal 11 (SIGSEGV) received by PID 647
============================================================`

describe.skipIf(!canRun)('the program of a rank', () => {
  let directory: string

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-rank-'))
    writeFileSync(join(directory, 'rank'), RANK_PROGRAM)
    writeFileSync(join(directory, 'say'), '')
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const read = (name: string) => readFileSync(join(directory, name), 'utf8')
  const start = (rank: number, command: string): ChildProcess =>
    spawn('sh', [join(directory, 'rank'), 'sh', '-c', command], {
      env: {
        PATH: process.env.PATH,
        MUSTER_DIRECTORY: directory,
        RANK: String(rank),
        WORLD_SIZE: '2',
        LOCAL_RANK: '0',
      },
      stdio: 'ignore',
    })
  const told = () => {
    const [word, ...rest] = read('say').trimEnd().split(' ')
    return word === 'rank' ? parseRankEnd(rest, { toMs: () => undefined, errorMs: undefined }) : undefined
  }
  const ended = async (rank: number, command: string) => {
    await once(start(rank, command), 'close')
    return told()
  }
  const print = (text: string) => `cat <<'END'\n${text}\nEND\n`

  it.each([
    ['an exception', TORCH_1, 1, 'ValueError: bad batch'],
    ['an exception in a rank of torch 2, which aborts', TORCH_2, 134, 'ValueError: bad batch'],
    ['an exception of C++', CPP, 134, 'out of tea'],
    ['what torchrun knows of a signal', AGENT, 1, 'traceback : Signal 11 (SIGSEGV) received by PID 647'],
    ['its last line', 'step 3\ncannot open data.bin', 3, 'cannot open data.bin'],
    ['nothing where it was killed', 'step 3', 137, undefined],
    ['an exception before it was ended', TORCH_1, 143, 'ValueError: bad batch'],
    ['its first characters alone', `Error: ${'x'.repeat(5000)}`, 1, `Error: ${'x'.repeat(293)}`],
    ['no control characters', 'OSError: \u001b[31mred\u0007', 1, 'OSError: [31mred'],
  ])('tells the end of a rank with %s', async (_, text, code, why) => {
    expect(await ended(1, `${print(text)}exit ${code}`)).toEqual({
      ...{ rank: 1, restart: 0, code },
      ...(why === undefined ? {} : { text: why }),
    })
    expect(read('rank.1')).toBe(`${text}\n`)
  })

  it('keeps output and errors of rank 0 apart, where metrics are read', async () => {
    expect(await ended(0, 'echo "$RANK of $WORLD_SIZE $MUSTER_RANK"; echo warning >&2')).toEqual({
      rank: 0,
      restart: 0,
      code: 0,
    })
    expect([read('out'), read('err')]).toEqual(['0 of 2 0\n', 'warning\n'])
  })

  it('passes a signal on, and tells the end that comes of it', async () => {
    const child = start(1, 'trap "echo stopping; exit 7" TERM; echo ready; while :; do sleep 0.05; done')
    const end = once(child, 'close')
    await waitUntil(() => has('ready'), 'the rank')
    child.kill('SIGTERM')
    await end
    expect(told()).toMatchObject({ code: 7, text: 'stopping' })
  })

  it.skipIf(!requirement('setpriv'))('does not leave the rank behind when it is killed itself', async () => {
    const child = start(1, 'echo "ready $$"; exec sleep 3000')
    const end = once(child, 'close')
    await waitUntil(() => has('ready'), 'the rank')
    const pid = Number(read('rank.1').split(' ')[1])
    child.kill('SIGKILL')
    await end
    await waitUntil(() => !isAlive(pid), 'the end of the rank')
  })

  const has = (word: string) => {
    try {
      return read('rank.1').includes(word)
    } catch {
      return false
    }
  }
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !/^State:\tZ/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
