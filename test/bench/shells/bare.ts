/** The time of a key over the connections alone, which no console built on them can beat. */
import { execFile } from 'node:child_process'
import { userInfo } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { PROMPT, type Servers } from './servers.ts'

export const BARE_ENTRY = 'ssh/ssh2/library.ts'

/** Milliseconds from a key to the last host's echo, with ssh2 in `workers` threads (0: the main thread) and nothing else. */
export async function timeBareKeys(
  servers: Servers,
  build: string,
  { hosts, keys, workers }: { hosts: number; keys: number; workers: number },
): Promise<number[]> {
  const script = fileURLToPath(new URL('./bare-program.ts', import.meta.url))
  const ports = servers.ports.slice(0, hosts).join(',')
  const warmUp = 25
  const { stdout } = await promisify(execFile)(process.execPath, [
    script,
    build,
    servers.userKey,
    userInfo().username,
    PROMPT,
    ports,
    String(workers),
    String(keys + warmUp),
  ])
  servers.takeTerminals(servers.names)
  return (JSON.parse(stdout) as number[]).slice(warmUp)
}
