/** Every view names a rank that was really killed as the one that failed. All hosts are this machine. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isFinal, type Job } from '../../../src/scheduler/jobs/job.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { themes } from '../../../src/ui/compositor/scene.ts'
import { nextInTrouble, rankPicture, ranksDocument } from '../../../src/ui/jobs/ranks-document.ts'
import { requirement } from '../../support/requirements.ts'
import { runMuster } from '../../support/run-muster.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = process.platform === 'linux' && requirement('setsid')
const HOSTS = ['m1', 'm2', 'm3']

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-killed-rank-'))
  const hosts = HOSTS.map((host) => `${host}: { transport: local }`).join(', ')
  writeFileSync(
    join(directory, 'hosts.yaml'),
    `cluster: lab\ndefaults: { resources: { cpu: 8 } }\nhosts: { ${hosts} }\n`,
  )
})
afterAll(() => rmSync(directory, { recursive: true }))

const muster = async (...words: readonly string[]) => await runMuster(words, { directory })
const pidOf = (rank: number) => Number(readFileSync(join(directory, `pid.${rank}`), 'utf8'))
const parentOf = (pid: number) =>
  Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1] ?? expect.unreachable())

/** Runs a gang of three, kills one of its ranks, and returns the job after its end. */
async function killed(kill: (pid: number) => void, rank: number): Promise<Job> {
  for (const each of HOSTS.keys()) rmSync(join(directory, `pid.${each}`), { force: true })
  const command = 'echo I am $RANK; echo $$ >pid.new.$RANK; mv pid.new.$RANK pid.$RANK; exec sleep 1000'
  const gang = ['--bundles', '3', '--cpu', '1', '--strategy', 'STRICT_SPREAD', '--', command]
  const id = Number((await muster('job', 'submit', ...gang)).output)
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  const working = runMuster(['job', 'work', '--until-empty'], { directory })
  try {
    await waitUntil(
      () =>
        store.get(id)?.state.kind === 'running' && HOSTS.every((_, each) => existsSync(join(directory, `pid.${each}`))),
      'all ranks to run',
    )
    kill(pidOf(rank))
    await waitUntil(() => isFinal((store.get(id) as Job).state), 'the end of the job')
  } finally {
    if (!isFinal((store.get(id) as Job).state)) await muster('job', 'cancel', String(id), '--yes')
    await working
  }
  return store.get(id) as Job
}

describe.skipIf(!canRun)('a rank of a gang', () => {
  it.each([
    ...[
      { how: 'KILL', state: 'failed', code: 137, words: 'exit 137 (SIGKILL)', rank: 1 },
      { how: 'TERM', state: 'failed', code: 143, words: 'exit 143 (SIGTERM)', rank: 2 },
    ].map((one) => ({ ...one, kill: (pid: number) => process.kill(pid, `SIG${one.how}`) })),
    {
      ...{ how: 'KILL, with the program that watches it', state: 'lost', code: undefined, rank: 2 },
      words: 'its process ended without an exit code',
      kill(pid: number) {
        const parent = parentOf(pid)
        process.kill(parent, 'SIGKILL')
        process.kill(pid, 'SIGKILL')
      },
    },
  ])('that got $how is named, listed, shown and selected as the one that failed', async ({ kill, rank, ...is }) => {
    const job = await killed(kill, rank)
    const id = String(job.id)
    const host = ('places' in job.state && job.state.places?.[rank]?.host) || ''
    const first = `rank ${rank} on ${host} failed first: ${is.words}`
    expect(job.state).toMatchObject({ kind: is.state, failed: rank })
    expect((await muster('job', 'show', id)).output).toContain(first)

    const rows = (await muster('job', 'ranks', id, '--json')).output.trim().split('\n')
    const states = rows.map((line) => JSON.parse(line) as { state: string; code?: number })
    expect(states.map(({ state }) => state)).toEqual(HOSTS.map((_, each) => (each === rank ? is.state : 'stopped')))
    expect(states[rank]?.code).toBe(is.code)

    const logs = (await muster('job', 'logs', id, '--failed')).output
    const code = is.code === undefined ? '' : `, exit ${is.code}`
    expect(logs).toBe(`==> rank ${rank} on ${host}: ${is.state}${code} <==\n  I am ${rank}\n`)

    const details = { job } as Parameters<typeof rankPicture>[0]
    const picture = rankPicture(details, { job: job.id, below: 'log' }, undefined)
    expect([picture.selected?.rank, nextInTrouble(picture)?.rank]).toEqual([rank, rank])
    const { head } = ranksDocument({
      ...{ details: { ...details, why: [] }, picture, samples: new Map(), columns: 200, headRows: 9 },
      ...{ theme: themes.none, nowMs: 0 },
    })
    expect(head.map((row) => row.map(({ text }) => text).join('')).join('\n')).toContain(first)
  })
})
