/** The source of ssh_config's settings for hosts: `ssh -G` if OpenSSH is installed, otherwise a library. */
import type { SshConfigValues } from './values.ts'

/** A question to ssh about a host; everything except `alias` was already set by hosts.yaml or the target. */
export type SshConfigQuestion = {
  readonly alias: string
  readonly address?: string
  readonly port?: number
  readonly user?: string
  readonly identityFiles?: readonly string[]
}

export type SshConfigAnswer =
  | { readonly ok: true; readonly values: SshConfigValues }
  /** Printable: the message of ssh, usually with file and line. */
  | { readonly ok: false; readonly reason: string }

export interface SshConfigSource {
  /** One answer per question, in their order. */
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
