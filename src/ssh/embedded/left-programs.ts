/** Programs of embedded hosts that left their process groups (jobs, `setsid`, `nohup`), found by the HOME in their environment. */
import { spawn } from 'node:child_process'

/** For sh; $1: the directory of the homes. TERM first, KILL after about a second; programs that start meanwhile are found, too. */
export const END_LEFT_PROGRAMS = `n=0
while p=$(grep -lszF "HOME=$1/" /proc/[0-9]*/environ | tr -dc '0-9\\n'); [ -n "$p" ] && [ $n -lt 40 ]; do
  if [ $n -lt 20 ]; then kill $p; else kill -KILL $p; fi
  n=$((n+1)); sleep 0.05
done 2>/dev/null
`

/** Never rejects. */
export async function endLeftPrograms(directory: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const child = spawn('/bin/sh', ['-c', END_LEFT_PROGRAMS, 'sh', directory], { cwd: '/', stdio: 'ignore' })
  child.once('error', () => resolve())
  child.once('close', () => resolve())
  await promise
}
