/** Hosts for verbs that run scripts there: one login each, questions on the terminal. */
import { randomBytes } from 'node:crypto'
import type { Endpoint } from '../../inventory/host.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import type { CredentialDialog, HostKeyReviewer } from '../../ssh/questions.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import { fanOutFor, requireRoomFor } from './fan-out.ts'
import { createOpsHosts, type ShellHosts } from './ops-hosts.ts'
import { askSudoOnce } from './sudo-password.ts'
import { createVerbWires } from './transports.ts'

export type OpenedHosts = Disposable & { readonly hosts: Required<OpsHosts> & ShellHosts; readonly fanOut: number }

/** `changed`: the hosts on which root may be needed (default: all). Disposing closes the logins. */
export function openOpsHosts(
  endpoints: readonly Endpoint[],
  options: GlobalOptions,
  context: CliContext,
  dialog: CredentialDialog & HostKeyReviewer,
  changed: readonly string[] = endpoints.map(({ host }) => host),
): OpenedHosts {
  const wires = createVerbWires(context, options.persist, dialog)
  requireRoomFor(endpoints.length)
  const fanOut = fanOutFor(endpoints.length, options, context)
  const hosts = createOpsHosts(endpoints, {
    ...wires,
    fanOut,
    token: randomBytes(8).toString('hex'),
    signal: context.signal,
    sudoPassword: askSudoOnce(dialog, changed),
  })
  return {
    hosts,
    fanOut,
    [Symbol.dispose]() {
      hosts[Symbol.dispose]()
      wires[Symbol.dispose]()
    },
  }
}
