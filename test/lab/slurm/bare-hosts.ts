/**
 * Hosts of a lab without Slurm, on which apt installs it from a repository of their own: the packages of this machine, packed
 * again. What they change stays in their memory. GPUs are device files that do nothing.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Lab } from '../cluster/lab.ts'

const PACKAGES = ['munge', 'slurm-client', 'slurmctld', 'slurmd']
const SCRIPTS = ['preinst', 'postinst', 'prerm', 'postrm', 'conffiles']

const prepareScript = (gpus: number): string => `set -e
mount -t tmpfs -o size=400m tmpfs /mnt
for each in usr var etc; do
  mkdir -p /mnt/$each/upper /mnt/$each/work
  mount -t overlay overlay -o lowerdir=/$each,upperdir=/mnt/$each/upper,workdir=/mnt/$each/work /$each
done
rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/* /etc/apt/preferences.d/* /var/lib/apt/lists/* /var/lib/muster
echo 'deb [trusted=yes] file:/run/lab/repository ./' > /etc/apt/sources.list
echo 'APT::Sandbox::User "root";' > /etc/apt/apt.conf.d/99lab
printf '#!/bin/sh\\nexit 101\\n' > /usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d
mkdir /mnt/units; cp /lib/systemd/system/munge.service /lib/systemd/system/slurm*.service /mnt/units
dpkg --purge --force-depends slurm-wlm ${PACKAGES.join(' ')} > /dev/null
rm -rf /etc/slurm /etc/munge /var/lib/munge /var/log/munge
apt-get -q update > /dev/null
mkdir /run/dev
mount -t tmpfs -o mode=755 tmpfs /run/dev
for each in null zero full random urandom tty fd stdin stdout stderr; do cp -a /dev/$each /run/dev; done
mkdir /run/dev/pts /run/dev/shm
mount --bind /dev/pts /run/dev/pts
ln -s pts/ptmx /run/dev/ptmx
for each in ${Array.from({ length: gpus }, (_, index) => index).join(' ')}; do mknod -m 666 /run/dev/nvidia$each c 1 3; done
mount --rbind /run/dev /dev`

export class BareHosts implements Disposable {
  readonly #lab: Lab
  readonly #directory = mkdtempSync(join(tmpdir(), 'muster-slurm-packages-'))

  constructor(lab: Lab) {
    this.#lab = lab
    const index = PACKAGES.map((name) => this.#pack(name)).join('')
    writeFileSync(join(this.#directory, 'Packages'), index)
  }

  async prepare(name: string, gpus: number): Promise<void> {
    const repository = join(this.#lab.directory, 'hosts', name, 'repository')
    mkdirSync(repository, { recursive: true, mode: 0o755 })
    cpSync(this.#directory, repository, { recursive: true })
    await this.exec(name, prepareScript(gpus))
  }

  /** What it prints; an error where it fails. */
  async exec(name: string, script: string): Promise<string> {
    const { code, stdout, stderr } = await this.#lab.host(name).exec(script)
    if (code !== 0) throw new Error(`${name}: ${script}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }

  [Symbol.dispose](): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }

  /** Its entry in the list of packages. */
  #pack(name: string): string {
    const tree = join(this.#directory, `tree-${name}`)
    mkdirSync(join(tree, 'DEBIAN'), { recursive: true, mode: 0o755 })
    const paths = execFileSync('dpkg-query', ['-L', name], { encoding: 'utf8' }).trim().split('\n').slice(1)
    // /lib is a link to /usr/lib, which the package may call by either name.
    const files = paths.flatMap((path) =>
      path === '/lib' ? [] : path.replace(/^\/(lib\/)?/, (_, lib) => (lib ? 'usr/lib/' : '')),
    )
    const archive = execFileSync('tar', ['-c', '--no-recursion', '-C', '/', ...files], {
      maxBuffer: 2 ** 28,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    execFileSync('tar', ['-x', '-C', tree], { input: archive })
    const known = execFileSync('dpkg-query', ['-s', name], { encoding: 'utf8' })
    const control = known.replace(/^Status: .*\n/m, '').replace(/^Conffiles:\n( .*\n)*/m, '')
    writeFileSync(join(tree, 'DEBIAN/control'), control)
    for (const script of SCRIPTS) {
      const source = `/var/lib/dpkg/info/${name}.${script}`
      if (existsSync(source)) cpSync(source, join(tree, 'DEBIAN', script))
    }
    const file = join(this.#directory, `${name}.deb`)
    execFileSync('dpkg-deb', ['-Znone', '--root-owner-group', '--build', tree, file], { stdio: 'pipe' })
    rmSync(tree, { recursive: true })
    const sum = createHash('sha256').update(readFileSync(file)).digest('hex')
    return `${control.trimEnd()}\nFilename: ./${name}.deb\nSize: ${statSync(file).size}\nSHA256: ${sum}\n\n`
  }
}
