/** The scheduler as a service of this machine: what `muster job work --install` writes (a unit of systemd, or a script that cron starts with the machine), and whether it runs. */

import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { shellQuote } from '../../../base/shell-quote.ts'
import { homeDirectory, stateDirectory } from '../../../base/user-directories.ts'
import type { Inventory } from '../../../inventory/inventory.ts'
import { execWord, unitWord } from '../../../ops/kernel/services.ts'
import type { CliContext } from '../../command-line/verb.ts'
import { queueName } from '../open-queue.ts'

export type Service = {
  /** Of the queue, as in its file's name. */
  readonly cluster: string
  /** The whole command line: absolute paths. */
  readonly words: readonly string[]
  /** Where hosts.yaml is. */
  readonly directory: string
  readonly environment: Readonly<Record<string, string>>
  /** The unit is one of the system, as the login is root. */
  readonly isRoot: boolean
  /** Of the queues: absolute. */
  readonly stateDirectory: string
}

export const SERVICE_HEAD = '# Made by Muster (muster job work --install): changes here are lost.'
/** Noted where it is found again, so that uninstalling takes it back. */
export const LINGER_NOTE = '# Muster let the login linger.'

export function unitOf({ cluster }: Pick<Service, 'cluster'>): string {
  return `muster-job-${cluster}.service`
}

export function unitFile(service: Pick<Service, 'cluster' | 'isRoot'>): string {
  return `${service.isRoot ? '/etc/systemd/system' : '~/.config/systemd/user'}/${unitOf(service)}`
}

/** What a scheduler ends with when it was stopped: Muster's code for an interrupt. */
const STOPPED = 130
const RESTART_S = 10

export function unitText(service: Service, isLingerOurs: boolean): string {
  const { cluster, words, directory, environment, isRoot } = service
  return [
    SERVICE_HEAD,
    ...(isLingerOurs ? [LINGER_NOTE] : []),
    '[Unit]',
    `Description=Scheduler of the job queue ${cluster} (muster job work)`,
    'Wants=network-online.target',
    'After=network-online.target',
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    // Only specifiers are special in this path.
    `WorkingDirectory=${directory.replaceAll('%', '%%')}`,
    ...Object.entries(environment).map(([name, value]) => `Environment=${unitWord(`${name}=${value}`)}`),
    `ExecStart=${words.map(execWord).join(' ')}`,
    `SuccessExitStatus=${STOPPED}`,
    'Restart=on-failure',
    `RestartSec=${RESTART_S}`,
    'TimeoutStopSec=30',
    // Jobs on this machine are in the unit's cgroup, and continue without the scheduler.
    'KillMode=process',
    '',
    '[Install]',
    `WantedBy=${isRoot ? 'multi-user.target' : 'default.target'}`,
    '',
  ].join('\n')
}

/** Without systemd. */
export function scriptFile({ stateDirectory, cluster }: Service): string {
  return `${stateDirectory}/jobs/work-${cluster}.sh`
}

/** Beside the script: the process that runs it. */
export const pidFile = (service: Service): string => `${scriptFile(service)}.pid`
/** Beside the script: what the scheduler says on stderr. */
export const logFile = (service: Service): string => `${scriptFile(service)}.log`

/**
 * Starts the scheduler again when it fails; TERM ends both. A log that has grown is replaced by a new one. The umask stays as it
 * is: jobs on this machine make their files with it.
 */
export function scriptText(service: Service): string {
  const { words, directory, environment } = service
  const exports = Object.entries(environment).map(([name, value]) => `export ${name}=${shellQuote(value)}`)
  return `#!/bin/sh
${SERVICE_HEAD}
${exports.join('\n')}
cd ${shellQuote(directory)} || exit 1
log=${shellQuote(logFile(service))} pid=${shellQuote(pidFile(service))} child=
private() { ( umask 077; : >> "$1" ); }
private "$pid"; echo $$ > "$pid"
trap 'rm -f "$pid"; [ -z "$child" ] || kill "$child"; exit 0' HUP INT TERM
while :; do
  [ ! -f "$log" ] || [ "$(($(wc -c < "$log")))" -lt 1000000 ] || mv -f "$log" "$log.old"
  private "$log"
  ${words.map(shellQuote).join(' ')} < /dev/null > /dev/null 2>> "$log" &
  child=$!
  wait "$child"
  case $? in 0 | ${STOPPED}) break;; esac
  sleep ${RESTART_S} & child=$!
  wait "$child"
done
rm -f "$pid"
`
}

/** In a crontab a per cent sign is a line break. crontab(5) */
export function cronLines(service: Service): readonly string[] {
  return [`@reboot /bin/sh ${shellQuote(scriptFile(service)).replaceAll('%', '\\%')}`]
}

const ASK_MS = 3_000

/**
 * `name`: the unit, or `cron`; `state`: `active`, `failed`, `inactive`, … Undefined: it is not installed. Never rejects.
 */
export async function serviceState(inventory: Inventory, { environment }: CliContext) {
  const isRoot = process.getuid?.() === 0
  const own = { cluster: queueName(inventory), isRoot }
  if (existsSync(unitFile(own).replace(/^~/, homeDirectory(environment)))) {
    const args = [isRoot ? '--system' : '--user', 'is-active', unitOf(own)]
    const runtime = environment.XDG_RUNTIME_DIR || `/run/user/${process.getuid?.() ?? ''}`
    const asked = promisify(execFile)('systemctl', args, {
      timeout: ASK_MS,
      env: { ...environment, XDG_RUNTIME_DIR: runtime },
    })
    // Its exit code says the same.
    const { stdout = '' } = await asked.catch((error: { readonly stdout?: string }) => error)
    return { name: unitOf(own), state: /^[a-z-]+$/m.exec(stdout)?.[0] ?? 'unknown' }
  }
  const service = { ...own, stateDirectory: stateDirectory(environment), words: [], directory: '', environment: {} }
  if (!existsSync(scriptFile(service))) return undefined
  return { name: 'cron', state: isAlive(pidFile(service)) ? 'active' : 'inactive' }
}

function isAlive(file: string): boolean {
  try {
    const pid = readFileSync(file, 'utf8').trim()
    // 0, as which an empty file counts, would ask about this process's own group.
    return /^[1-9]\d*$/.test(pid) && process.kill(Number(pid), 0)
  } catch {
    return false
  }
}
