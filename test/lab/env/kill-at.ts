/** Muster, killed while it works. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { waitUntil } from '../../support/wait-until.ts'
import type { Lab } from '../cluster/lab.ts'

/**
 * Runs it with --json, and kills it as soon as a step of this id has begun. On a machine that is busy it may have ended before;
 * what was killed before may have left nothing of that step to do. Throws where it fails by itself.
 */
export async function killAtStep(lab: Lab, command: readonly string[], step: RegExp): Promise<void> {
  const [file = '', ...args] = lab.command([...command, '--json'])
  const child = spawn(file, args, { env: lab.environment, stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(child, 'close')
  const begun = new RegExp(`"step":"${step.source}","title":"[^"]*","state":"begin"`)
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (begun.test(output)) child.kill('SIGKILL')
  })
  const [code] = (await ended) as [number | null]
  if (code !== null && code !== 0) throw new Error(`it ended by itself, with ${code}:\n${output}`)
}

/** Kills it as soon as this holds. */
export async function killWhen(lab: Lab, command: readonly string[], holds: () => Promise<boolean>): Promise<void> {
  const [file = '', ...args] = lab.command(command)
  const child = spawn(file, args, { env: lab.environment, stdio: 'ignore' })
  const ended = once(child, 'exit')
  await waitUntil(holds, 'the moment to kill it', 60_000)
  child.kill('SIGKILL')
  await ended
}
