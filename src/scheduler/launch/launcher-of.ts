/** The launcher of a job, of Muster's own or a row of hosts.yaml. Apart from the table, which every start of Muster reads. */
import type { Launcher, LauncherRow, LaunchSpec } from './launcher.ts'
import { LAUNCHERS } from './launchers.ts'
import { rowLauncher } from './rows.ts'

/** Undefined: this version does not know it. */
export function launcherOf({
  kind,
  row,
}: Pick<LaunchSpec, 'kind'> & { readonly row?: LauncherRow | undefined }): Launcher | undefined {
  return row === undefined ? LAUNCHERS.find(({ name }) => name === kind) : rowLauncher(kind, row)
}
