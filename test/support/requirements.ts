/**
 * What a test needs of the machine (root, a program, namespaces) and may not find. With MUSTER_LAB=required a missing part
 * fails the test file; otherwise its tests are skipped and the reason is printed.
 *
 *   describe.skipIf(!requirement('sshd'))('…', …)
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { cgroupMounts } from '../lab/cluster/cgroups.ts'
import { kubernetesDirectory } from '../lab/cluster/kubernetes-programs.ts'
import { environmentDirectory, HEAVY_ENVIRONMENTS } from '../lab/cluster/python-environment.ts'
import { missingConda } from './real-conda.ts'

const SYSTEM_PATH = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

const NAMESPACES = ['--net', '--mount', '--uts', '--pid', '--fork']

/**
 * Programs by name, and these: `root`, `/proc` (of Linux), `namespaces` (root that may make network, mount, UTS and PID namespaces), `kernel hosts`,
 * `kubernetes` (its programs, built), `containers` (of a node of Kubernetes), `python environments`, `conda of PyPI`, `python MODULE` (a module of the system's Python), `environment NAME` (an environment
 * of heavy tests).
 */
export function requirement(...names: readonly string[]): boolean {
  const reasons = names.flatMap((name) => missing(name) ?? [])
  if (reasons.length === 0) return true
  const reason = reasons.join('; ')
  if (process.env.MUSTER_LAB === 'required') throw new Error(`MUSTER_LAB=required, but ${reason}`)
  process.stderr.write(`skipped: ${reason}\n`)
  return false
}

/** The absolute path of a program, also of those that live in sbin; undefined when it is not installed. */
export function findProgram(name: string): string | undefined {
  const directories = [...(process.env.PATH ?? '').split(delimiter).filter((entry) => entry !== ''), ...SYSTEM_PATH]
  return directories.map((directory) => join(directory, name)).find(isExecutable)
}

function missing(name: string): string | undefined {
  if (name === '/proc') return existsSync('/proc/self/stat') ? undefined : 'there is no /proc'
  if (name === 'root') return process.getuid?.() === 0 ? undefined : 'this needs root'
  if (name === 'namespaces') return missingNamespaces()
  if (name === 'kernel hosts') return missingKernelHosts()
  if (name === 'kubernetes') return missingKubernetes()
  if (name === 'containers') return missingContainers()
  if (name === 'python environments') return missingPythonEnvironments()
  if (name === 'conda of PyPI') return missingConda()
  if (name.startsWith('python ')) return missingModule(name.slice('python '.length))
  if (name.startsWith('environment ')) return missingEnvironment(name.slice('environment '.length))
  // Run by anybody else, it cannot hand over the terminals that it opens.
  if (name === 'sshd' && process.getuid?.() !== 0) return 'sshd needs root to open terminals'
  return findProgram(name) === undefined ? `the program ${name} is not installed` : undefined
}

/** The Python of the system, which hosts of a lab see, too. */
function missingPythonEnvironments(): string | undefined {
  const python = ['/usr/bin/python3', '/usr/local/bin/python3'].find(isExecutable)
  if (python === undefined) return 'python3 is not installed'
  const { status } = spawnSync(python, ['-c', 'import ensurepip, venv'])
  return status === 0 ? undefined : 'python3 cannot make environments (on Debian: install python3-venv)'
}

function missingModule(name: string): string | undefined {
  const find = 'import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)'
  const { status } = spawnSync('/usr/bin/python3', ['-c', find, name])
  return status === 0 ? undefined : `/usr/bin/python3 has no module ${name} (on Debian: python3-${name})`
}

function missingEnvironment(name: string): string | undefined {
  const known = HEAVY_ENVIRONMENTS.find((each) => each === name)
  if (known === undefined) throw new Error(`there is no environment ${name}`)
  return existsSync(environmentDirectory(known))
    ? undefined
    : `the environment ${name} is not installed (install it: npm run lab -- parts ${name})`
}

function missingKubernetes(): string | undefined {
  return existsSync(kubernetesDirectory())
    ? undefined
    : 'Kubernetes is not built (build it: npm run lab -- image kubernetes)'
}

function missingContainers(): string | undefined {
  const programs = ['containerd', 'ctr', 'runc', 'busybox'].filter((name) => findProgram(name) === undefined)
  const files = ['/usr/lib/cni/bridge', '/usr/lib/cni/host-local'].filter((path) => !isExecutable(path))
  const absent = [...programs, ...files]
  if (cgroupMounts().length === 0) return 'no cgroups are mounted'
  return absent.length === 0
    ? undefined
    : `not installed: ${absent.join(', ')} (on Debian: containerd, runc, busybox-static and containernetworking-plugins)`
}

/** What it takes to build the disk of User-Mode Linux guests and to plug them into a bridge. */
function missingKernelHosts(): string | undefined {
  if (!existsSync('/dev/net/tun')) return 'there is no /dev/net/tun'
  const programs = ['linux.uml', 'mmdebstrap', 'mkfs.ext4', 'flock']
  const absent = programs.filter((name) => findProgram(name) === undefined)
  return absent.length === 0 ? undefined : `not installed: ${absent.join(', ')}`
}

function missingNamespaces(): string | undefined {
  const unshare = findProgram('unshare')
  if (unshare === undefined) return 'the program unshare is not installed'
  const { status, stderr } = spawnSync(unshare, [...NAMESPACES, 'true'], { encoding: 'utf8' })
  return status === 0 ? undefined : `namespaces cannot be made here (${stderr?.trim() || 'unshare failed'})`
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
