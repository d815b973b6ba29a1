/** Who answers what ssh_config says about hosts: `ssh -G` where OpenSSH is installed, else a library. */
import type { SshConfigValues } from './values.ts'

/** A host as ssh would be asked for it; all but `alias` are what hosts.yaml or the target already decided. */
export type SshConfigQuestion = {
  readonly alias: string
  readonly address?: string
  readonly port?: number
  readonly user?: string
  readonly identityFiles?: readonly string[]
}

export type SshConfigAnswer =
  | { readonly ok: true; readonly values: SshConfigValues }
  /** Printable; what ssh said, usually with file and line. */
  | { readonly ok: false; readonly reason: string }

export interface SshConfigSource {
  /** One answer a question, in their order. */
  ask(questions: readonly SshConfigQuestion[], signal?: AbortSignal): Promise<readonly SshConfigAnswer[]>
}

/** The same as options of ssh, which win over every file. A path with a quote never gets here: the schema refuses it. */
export function optionsOf({ address, port, user, identityFiles }: SshConfigQuestion): string[] {
  const quoted = (path: string): string => (/\s/.test(path) ? `"${path}"` : path)
  return [
    ...(address === undefined ? [] : [`-oHostName=${address.replaceAll('%', '%%')}`]),
    ...(port === undefined ? [] : [`-oPort=${port}`]),
    ...(user === undefined ? [] : [`-oUser=${user}`]),
    ...(identityFiles ?? []).map((path) => `-oIdentityFile=${quoted(path)}`),
  ]
}
