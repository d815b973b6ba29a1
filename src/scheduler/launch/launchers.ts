/** A new launcher is a file and a line here. */
import type { Launcher, LauncherRow, LaunchSpec } from './launcher.ts'
import { mpi } from './mpi.ts'
import { rowLauncher } from './rows.ts'
import { tf } from './tf.ts'
import { torchrun } from './torchrun.ts'
import { vllm } from './vllm.ts'

export const LAUNCHERS: readonly Launcher[] = [mpi, torchrun, tf, vllm]

/** Of a job. Undefined: this version does not know it. */
export function launcherOf({
  kind,
  row,
}: Pick<LaunchSpec, 'kind'> & { readonly row?: LauncherRow | undefined }): Launcher | undefined {
  return row === undefined ? LAUNCHERS.find(({ name }) => name === kind) : rowLauncher(kind, row)
}
