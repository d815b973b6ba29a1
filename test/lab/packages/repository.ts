/** Hosts with packages of their own: each has its view of this machine's dpkg database, which it may change, and a repository. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Lab } from '../cluster/lab.ts'

export type TinyPackage = { readonly name: string; readonly version: string; readonly depends?: string }

/** Changes to these stay in memory, on this host. */
const OWN = `mount -t tmpfs -o size=200m tmpfs /mnt
for each in usr var etc opt; do
  mkdir -p /mnt/$each/upper /mnt/$each/work
  mount -t overlay overlay -o lowerdir=/$each,upperdir=/mnt/$each/upper,workdir=/mnt/$each/work /$each
done
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/preferences.d/* /var/lib/apt/lists/* /var/lib/muster
echo 'deb [trusted=yes] file:/run/lab/repository ./' > /etc/apt/sources.list
echo 'APT::Sandbox::User "root";' > /etc/apt/apt.conf.d/99lab
apt-get -q update`

/** Builds these packages once, offers them to a host as they are named here, and lets the host read its lists. */
export class TinyPackages implements Disposable {
  readonly #lab: Lab
  readonly #directory = mkdtempSync(join(tmpdir(), 'muster-packages-'))

  constructor(lab: Lab) {
    this.#lab = lab
  }

  async exec(host: string, script: string): Promise<string> {
    const { code, stdout, stderr } = await this.#lab.host(host).exec(script)
    if (code !== 0) throw new Error(`${host}: ${script}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }

  async prepare(host: string, packages: readonly TinyPackage[]): Promise<void> {
    this.#write(host, packages)
    await this.exec(host, OWN)
  }

  /** Replaces what the host is offered. */
  async offer(host: string, packages: readonly TinyPackage[]): Promise<void> {
    this.#write(host, packages)
    await this.exec(host, 'apt-get -q update')
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }

  #write(host: string, packages: readonly TinyPackage[]): void {
    const repository = join(this.#lab.directory, 'hosts', host, 'repository')
    rmSync(repository, { recursive: true, force: true })
    mkdirSync(repository, { recursive: true, mode: 0o755 })
    const entries = packages.map((each) => {
      const file = `${each.name}_${each.version}_all.deb`
      const bytes = this.#build(each, file)
      writeFileSync(join(repository, file), bytes)
      const sum = createHash('sha256').update(bytes).digest('hex')
      return `${controlOf(each)}Filename: ./${file}\nSize: ${bytes.length}\nSHA256: ${sum}\n\n`
    })
    writeFileSync(join(repository, 'Packages'), entries.join(''))
  }

  #build(each: TinyPackage, file: string): Buffer {
    const path = join(this.#directory, file)
    if (!readdirSync(this.#directory).includes(file)) {
      const tree = join(this.#directory, 'tree')
      mkdirSync(join(tree, 'DEBIAN'), { recursive: true, mode: 0o755 })
      mkdirSync(join(tree, 'usr/share', each.name), { recursive: true, mode: 0o755 })
      writeFileSync(join(tree, 'DEBIAN/control'), controlOf(each))
      writeFileSync(join(tree, 'usr/share', each.name, 'version'), `${each.version}\n`)
      execFileSync('dpkg-deb', ['--root-owner-group', '--build', tree, path], { stdio: 'pipe' })
      rmSync(tree, { recursive: true })
    }
    return readFileSync(path)
  }
}

function controlOf({ name, version, depends }: TinyPackage): string {
  const needs = depends === undefined ? '' : `Depends: ${depends}\n`
  return `Package: ${name}\nVersion: ${version}\nArchitecture: all\nMaintainer: Lab <lab@localhost>\n${needs}Description: a package of the lab\n`
}
