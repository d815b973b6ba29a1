/** The process that the user's shell waits for, once it has started a console's process. It needs no memory limit. */
import { reportOutputErrors } from './cli/command-line/report-output-errors.ts'
import { followConsole } from './cli/sessions/console-client.ts'
import type { StartedConsole } from './cli/sessions/spawn-console.ts'
import { ownProcess } from './own-process.ts'

export async function followStarted(started: StartedConsole): Promise<void> {
  await ownProcess().run((_, context) => reportOutputErrors(context, () => followConsole(started, context)), [])
}
