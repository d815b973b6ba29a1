/** iperf where it is missing (`muster net mesh --install`), and its removal (`muster net uninstall`): a plan is shown and asked about, like any change. */
import type { ChangeDirection } from '../../ops/kernel/area.ts'
import { type IperfTool, iperfArea } from '../../ops/net/mesh/install-iperf.ts'
import { changeAreas } from '../bring-up/change.ts'
import type { CliContext, GlobalOptions, VerbCode } from '../command-line/verb.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { type OpenedHosts, openOpsHosts } from '../connect/ops-hosts.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'

export async function changeIperf(
  direction: ChangeDirection,
  names: readonly string[],
  tool: IperfTool,
  opened: OpenedHosts,
  options: GlobalOptions,
  context: CliContext,
): Promise<number> {
  const { hosts, fanOut } = opened
  const areas = [iperfArea(names, tool)]
  return await changeAreas(direction, areas, { hosts, fanOut, dialog: new TtyDialog() }, options, context)
}

export const uninstall: VerbCode = {
  define: (command) => command.argument('[target]', 'hosts (default: all)'),
  help: `
Examples:
  muster net uninstall 'm[8-9]' --dry-run
`,
  async run(target: string | undefined, options: GlobalOptions, context: CliContext) {
    const { endpoints } = await selectEndpoints(target, options, context)
    using opened = openOpsHosts(endpoints, options, context)
    const names = endpoints.map(({ host }) => host)
    return await changeIperf('down', names, 'iperf3', opened, options, context)
  },
}
