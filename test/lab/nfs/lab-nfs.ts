/** `muster nfs` as the user of a lab of kernel hosts. */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROGRAM } from '../../support/console-options.ts'
import type { Lab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

const RUN_MS = 600_000

export type LabNfs = ReturnType<typeof labNfs>

/** `shares`: of hosts.yaml, an indented item a line. */
export function labNfs(lab: Lab, shares: string, connectTimeoutS: number) {
  const file = join(lab.directory, 'nfs.yaml')
  const hosts = lab.kernelHosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`)
  writeFileSync(file, `cluster: lab\ndefaults: { user: root }\nhosts:\n${hosts.join('')}nfs:\n${shares}`)
  const command = (...args: readonly string[]) => [
    ...PROGRAM,
    ...['--hosts', file, '--connect-timeout', String(connectTimeoutS), 'nfs', ...args],
  ]
  return {
    run: async (...args: readonly string[]): Promise<RunResult> =>
      await lab.run(command(...args), { timeoutMs: RUN_MS }),
    /** What is found on hosts where a path is not the directory that the others have. */
    checkDirectory: async (path: string): Promise<string> => {
      const program = join(import.meta.dirname, 'check-directory-program.ts')
      const { code, stdout, stderr } = await lab.run([process.execPath, '--import', 'tsx', program, file, path])
      if (code !== 0) throw new Error(stderr)
      return stdout
    },
    /** It may be killed on the way. */
    start(...args: readonly string[]) {
      const [program = '', ...argv] = lab.command(command(...args))
      return spawn(program, argv, { env: lab.environment, stdio: ['ignore', 'pipe', 'inherit'] })
    },
    /** What a script prints on each of the hosts. */
    states: async (script: string) =>
      await Promise.all(lab.kernelHosts.map(async (host) => await host.mustExec(script))),
  }
}
