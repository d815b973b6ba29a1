/** Optuna as it is used without Muster. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { environmentDirectory, pythonEnvironment } from '../../lab/cluster/python-environment.ts'

const PROGRAM = join(import.meta.dirname, 'peer.py')

/** The directory of `python3` with Optuna on this machine; built if missing. */
export async function optunaPath(): Promise<string> {
  await pythonEnvironment('optuna')
  return join(environmentDirectory('optuna'), 'venv', 'bin')
}

export function spawnPeer(path: string, ...args: readonly string[]): ChildProcess {
  return spawn(join(path, 'python3'), [PROGRAM, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
}

export async function runPeer(path: string, ...args: readonly string[]): Promise<void> {
  const [code] = (await once(spawnPeer(path, ...args), 'close')) as [number | null]
  if (code !== 0) throw new Error(`peer.py ${args.join(' ')}: exit ${code}`)
}

/** Optuna's TPE as it is without options, in one process. */
export class PeerPoints implements Disposable {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>

  constructor(path: string, seed: number, parameters: readonly object[]) {
    this.#child = spawnPeer(path, 'points', String(seed), JSON.stringify(parameters))
    if (this.#child.stdout === null) throw new Error('no output')
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
  }

  async ask(): Promise<Readonly<Record<string, string>>> {
    this.#child.stdin?.write('ask\n')
    const { value, done } = await this.#lines.next()
    if (done === true) throw new Error('Optuna has ended')
    return JSON.parse(value) as Readonly<Record<string, string>>
  }

  /** `trial`: from 0, as they were asked for. */
  tell(trial: number, value: number): void {
    this.#child.stdin?.write(`${trial} ${value}\n`)
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL')
  }
}
