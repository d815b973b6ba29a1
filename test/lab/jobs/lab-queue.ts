/** `muster job` and `muster study` as the user of a lab, on one hosts.yaml. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../../../src/base/errors.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { waitUntil } from '../../support/wait-until.ts'
import type { Lab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

export type JobLine = {
  readonly job: number
  readonly state: string
  readonly attempt: number
  readonly reason?: string
  readonly started?: string
  readonly ended?: string
  readonly places?: readonly { readonly host: string }[]
}

const PATIENCE_MS = 120_000
const RUN_MS = 200_000

export type LabQueue = ReturnType<typeof labQueue>

/** In what a driver prints: that a job is in this state now. */
export const isJob = (id: string, state: string): RegExp => new RegExp(`"job":${id},"state":"${state}"`)

/** Writes a hosts.yaml with all hosts of the lab, each with so much for jobs. */
export function hostsFileOf(lab: Lab, cluster: string, resources = 'cpu: 8, gpu: 0, memory: 1GiB'): string {
  const file = join(lab.directory, `${cluster}.yaml`)
  const hosts = [...lab.hosts, ...lab.kernelHosts].map(({ name, address }) => `  ${name}: { address: ${address} }\n`)
  const defaults = `defaults: { user: root, resources: { ${resources} } }\n`
  writeFileSync(file, `cluster: ${cluster}\n${defaults}hosts:\n${hosts.join('')}`)
  return file
}

/** `environment`: besides what the lab's user has. */
export function labQueue(lab: Lab, hostsFile: string, environment: NodeJS.ProcessEnv = {}) {
  const env = { ...lab.environment, ...environment }
  const argv = (...args: readonly string[]) => [
    ...PROGRAM,
    ...['--hosts', hostsFile, '--connect-timeout', '10'],
    ...args,
  ]
  const muster = async (...args: readonly string[]): Promise<RunResult> =>
    await lab.run(argv(...args), { timeoutMs: RUN_MS, environment: env })
  const job = async (...args: readonly string[]): Promise<RunResult> => await muster('job', ...args)

  /** What `muster study …` prints. */
  const study = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await muster('study', ...args)
    if (code !== 0) throw new Error(stderr)
    return stdout
  }

  /** The numbers as they are printed. */
  const submit = async (...args: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await job('submit', ...args)
    if (stdout === '') throw new Error(stderr)
    return stdout.trim()
  }

  const list = async (): Promise<readonly JobLine[]> => {
    const { stdout } = await job('list', '--limit', '1000', '--json')
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as JobLine)
  }

  const find = async (id: string): Promise<JobLine> => {
    const found = (await list()).find((line) => String(line.job) === id)
    if (found === undefined) throw new Error(`there is no job ${id}`)
    return found
  }

  const show = async (id: string): Promise<string> => (await job('show', id)).stdout

  /** Waits until `job show` prints it. */
  const says = async (id: string, words: RegExp) => {
    let shown = ''
    const isSaid = async () => {
      shown = await show(id)
      return words.test(shown)
    }
    await waitUntil(isSaid, () => `job ${id} to say ${words}, not:\n${shown}`, PATIENCE_MS)
  }

  const children: ChildProcess[] = []
  /** Ends whoever still drives. */
  const stop = async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = once(child, 'close')
      child.kill('SIGKILL')
      await ended
    }
  }

  const work = (...args: readonly string[]) => {
    const [file = '', ...rest] = lab.command(argv('job', 'work', '--until-empty', '--json', ...args))
    const child = spawn(file, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    children.push(child)
    let output = ''
    let messages = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      messages += text
    })
    const wait = async (isTrue: () => boolean, what: string) => {
      await waitUntil(isTrue, what, PATIENCE_MS).catch((error: unknown) => {
        throw new Error(`${messageOf(error)}\n${output}${messages}`)
      })
    }
    return {
      child,
      ended: once(child, 'close'),
      told: async (words: string) => await wait(() => messages.includes(words), words),
      seen: async (pattern: RegExp, count = 1) =>
        await wait(() => output.split('\n').filter((line) => pattern.test(line)).length >= count, String(pattern)),
    }
  }

  /** `muster job logs -f`; `says` waits until it has printed that. */
  const follow = (id: string) => {
    const [file = '', ...rest] = lab.command(argv('job', 'logs', id, '--follow'))
    const child = spawn(file, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    children.push(child)
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    return {
      says: async (words: string) => await waitUntil(() => stdout.includes(words), words, PATIENCE_MS),
      ended: once(child, 'close').then(([code]) => ({ code, stdout, stderr })),
    }
  }

  return { muster, job, study, submit, list, find, show, says, work, follow, stop }
}
