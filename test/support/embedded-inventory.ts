/** A hosts.yaml of embedded hosts for the program itself, and an environment in which nothing of the tester's own SSH configuration counts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EmbeddedHosts } from '../../src/ssh/embedded/start-embedded-hosts.ts'
import { findProgram } from './requirements.ts'

export type EmbeddedInventory = Disposable & {
  readonly file: string
  readonly environment: Readonly<Record<string, string>>
}

/** Needs `ssh`. `declared`: further lines of hosts.yaml. */
export function writeEmbeddedInventory(hosts: EmbeddedHosts, declared: readonly string[]): EmbeddedInventory {
  const directory = mkdtempSync(join(tmpdir(), 'muster-inventory-'))
  const file = join(directory, 'hosts.yaml')
  // ssh reads the configuration of the account, wherever HOME is.
  const config = join(directory, 'ssh_config')
  const ssh = `#!/bin/sh\nexec ${findProgram('ssh')} -F ${config} "$@"\n`
  const lines = hosts.hosts.map(({ name, address, port }) => `  ${name}: { address: ${address}, port: ${port} }`)
  const defaults = `defaults: { user: ${hosts.user}, identity_file: ${hosts.identityFile} }`
  writeFileSync(config, `UserKnownHostsFile ${hosts.knownHostsFile}\n`)
  writeFileSync(join(directory, 'ssh'), ssh, { mode: 0o755 })
  writeFileSync(file, `${['cluster: lab', defaults, 'hosts:', ...lines, ...declared].join('\n')}\n`)
  return {
    file,
    environment: { HOME: directory, PATH: `${directory}:${process.env.PATH}` },
    // A program that just ends may still write its compiled code.
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 }),
  }
}
