/** Child processes for the lab: run to the end, or run until one line says that something stands. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

export type RunResult = { readonly code: number; readonly stdout: string; readonly stderr: string }

export type RunOptions = {
  readonly environment?: NodeJS.ProcessEnv
  readonly directory?: string
  readonly stdin?: string
  /** 240,000 unless given; then the program is killed and the promise rejects. */
  readonly timeoutMs?: number
}

const BASE_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** The environment of what runs on hosts and of the lab's own tools: nothing of the user's. */
export const PLAIN_ENVIRONMENT: NodeJS.ProcessEnv = { PATH: BASE_PATH, LANG: 'C.UTF-8' }

export async function run(argv: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const [file = '', ...args] = argv
  const child = spawn(file, args, {
    env: options.environment ?? PLAIN_ENVIRONMENT,
    cwd: options.directory,
    timeout: options.timeoutMs ?? 240_000,
    killSignal: 'SIGKILL',
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text
  })
  child.stdin.on('error', () => {})
  child.stdin.end(options.stdin ?? '')
  const [code, signal] = await once(child, 'close')
  if (code === null) throw new Error(`${argv.join(' ')} ended by ${signal}\n${stdout}${stderr}`)
  return { code, stdout, stderr }
}

/** Like `run`, but anything except success is an error that shows what was said. */
export async function runOrThrow(argv: readonly string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await run(argv, options)
  if (code !== 0) throw new Error(`${argv.join(' ')}: exit ${code}\n${stdout}${stderr}`)
  return stdout
}

/** Waits for the line `ready NUMBER` on the child's stdout; an error with its stderr when it ends first. */
export async function readReadyLine(child: ChildProcess, what: string): Promise<number> {
  return await new Promise((resolve, reject) => {
    let output = ''
    let errors = ''
    const fail = (reason: string) => reject(new Error(`${what} did not come up: ${reason}\n${output}${errors}`))
    child.once('error', ({ message }) => fail(message))
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      errors += text
    })
    child.stdout?.setEncoding('utf8').on('data', (text) => {
      output += text
      const pid = /^ready (\d+)\n/m.exec(output)?.[1]
      if (pid !== undefined) resolve(Number(pid))
    })
    // Every process that holds the pipes is gone or has closed them.
    child.once('close', (code) => fail(`exit ${code}`))
  })
}
