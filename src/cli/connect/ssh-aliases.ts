/** The names in ~/.ssh/config that may be machines: what `muster init` and Tab offer without a hosts.yaml. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { homeDirectory } from '../../base/user-directories.ts'
import { ImportedInventory } from '../../inventory/import/imported-inventory.ts'
import { ssh } from '../../inventory/import/ssh.ts'
import type { CliContext } from '../command-line/verb.ts'

/** Names that people have in ssh_config for git, where no shell answers. */
const GIT_SERVICE = /(^|[.-])(github|gitlab|bitbucket|codeberg)([.-]|$)/i

export type SshAliases = ImportedInventory['hosts']

/** @throws MusterError `configuration` if ssh_config cannot be read */
export async function sshAliases({ environment: env, workingDirectory: cwd }: CliContext): Promise<SshAliases> {
  const home = homeDirectory(env)
  const found = new ImportedInventory()
  if (existsSync(join(home, '.ssh/config'))) await ssh.read({ cwd, env, home }, found)
  return new Map([...found.hosts].filter(([name]) => !GIT_SERVICE.test(name)))
}
