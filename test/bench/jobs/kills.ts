/**
 * `muster job work` is killed with -9 at random moments, again and again, while jobs are submitted, run and end; in every seventh
 * round two are started at once. In the end each job has to be done, each bundle begun once, on its first attempt.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { Row } from '../support/statistics.ts'
import { SPEC, submission } from './store.ts'

const HOSTS = 3
/** They are killed at most so long after one of them drives, in every fifth round after their start. */
const LONGEST_MS = 600
const DRIVES_WITHIN_MS = 60_000
const SHORT_A_ROUND = 5

export async function benchKills(
  directory: string,
  main: string,
  most: number,
  seconds: number,
  log: (line: string) => void,
): Promise<readonly Row[]> {
  const home = join(directory, 'home')
  const queue = join(home, '.local', 'state', 'muster', 'jobs')
  mkdirSync(queue, { recursive: true, mode: 0o700 })
  const file = join(directory, 'kills.yaml')
  const hosts = Array.from({ length: HOSTS }, (_, index) => `  h${index + 1}: { transport: local }\n`).join('')
  writeFileSync(file, `cluster: kills\ndefaults: { resources: { cpu: 64, gpu: 0, memory: 1GiB } }\nhosts:\n${hosts}`)
  using store = new JobStore(join(queue, 'kills.db'))
  const env = { PATH: process.env.PATH, HOME: home, XDG_CACHE_HOME: join(directory, 'cache') }
  const work = (...args: readonly string[]) => {
    const argv = [main, '--hosts', file, 'job', 'work', ...args]
    const child = spawn(process.execPath, argv, { env, stdio: 'ignore' })
    return { child, ended: once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]> }
  }
  const expected: string[] = []
  const submit = (command: string, bundles: number, count: number) => {
    const spec = { ...SPEC, command: `echo $MUSTER_JOB.$RANK.$MUSTER_ATTEMPT >>ran; ${command}`, bundles }
    for (const id of store.submit(submission(spec, count), Date.now()))
      for (let rank = 0; rank < bundles; rank++) expected.push(`${id}.${rank}.1`)
  }
  let drove = 0
  let found = 0
  const untilMs = Date.now() + seconds * 1000
  let rounds = 0
  for (; rounds < most && Date.now() < untilMs; rounds++) {
    const round = rounds
    submit('sleep 0.05', 1, SHORT_A_ROUND)
    if (round % 10 === 0) submit('sleep 10', 2, 1)
    const before = store.active().length
    const running = round % 7 === 0 ? [work(), work()] : [work()]
    const isDriving = () => running.some(({ child }) => store.lease.owner(Date.now())?.endsWith(`(pid ${child.pid})`))
    // Some are killed before they drive.
    if (round % 5 !== 0) await waitUntil(isDriving, 'one of them to drive', DRIVES_WITHIN_MS)
    await delay(Math.random() * LONGEST_MS)
    if (isDriving()) {
      drove++
      found += before
    }
    for (const { child } of running) child.kill('SIGKILL')
    for (const { ended } of running) await ended
    if (round % 50 === 49) log(`${round + 1} rounds, ${drove} of them drove: ${[...store.counts()].join(' ')}`)
  }
  const [code] = await work('--until-empty').ended
  const states = [...store.counts()].map(([kind, count]) => `${count} ${kind}`).join()
  const ran = readFileSync(join(home, 'ran'), 'utf8').trim().split('\n')
  const isWell = code === 0 && ran.toSorted().join() === expected.toSorted().join() && store.counts().size === 1
  log(`exit ${code}; ${states}; ${expected.length} bundles expected, ${ran.length} began`)
  return [
    {
      what: `\`muster job work\` killed with -9 ${rounds} times up to ${LONGEST_MS} ms after its start or after it became the active scheduler (active in ${drove} rounds; found a running job again ${found} times), two at once in every seventh round: ${expected.length} bundles`,
      ours: isWell ? 'each started once and finished' : `**${states}, ${ran.length} started**`,
      peer: '',
      goal: '1,000 rounds, none lost, none twice',
      isReached: isWell && rounds >= 1000,
    },
  ]
}
