/** Memory, load, limits, rights, names, languages and the clock of one machine. */

import { counted } from '../../../base/counted.ts'
import { formatBytes } from '../../../base/format-bytes.ts'
import { shellQuote } from '../../../base/shell-quote.ts'
import { formatDuration } from '../../../base/time-text.ts'
import { asRoot, type Complaint, complaint, type Finding, onHost } from '../../kernel/finding.ts'
import type { ClockOffset } from '../clock-offset.ts'
import type { MachineFacts } from '../fact-script.ts'
import type { TimeService } from '../facts/machine.ts'

const MIB = 2 ** 20

export function machineComplaints(facts: MachineFacts, inventoryName: string | undefined): Complaint[] {
  return [
    ...memoryComplaints(facts),
    ...loadComplaints(facts),
    ...limitComplaints(facts),
    ...sudoComplaints(facts),
    ...pythonComplaints(facts),
    ...localeComplaints(facts),
    ...nameComplaints(facts, inventoryName),
  ]
}

function memoryComplaints({ memory }: MachineFacts): Complaint[] {
  if (memory?.availableBytes === undefined) return []
  const { availableBytes, totalBytes, swapFreeBytes = 0, swapTotalBytes = 0 } = memory
  const swap = swapTotalBytes === 0 ? 'no swap' : `${formatBytes(swapFreeBytes)} of ${formatBytes(swapTotalBytes)} swap`
  const detail = `${formatBytes(availableBytes)} of ${formatBytes(totalBytes)} available, ${swap}`
  const more = { detail, fix: onHost('ps -eo rss,pid,user,comm | sort -rn | head -n 15') }
  if (availableBytes < 64 * MIB && swapFreeBytes < 64 * MIB) {
    return [complaint('blocker', 'memory-full', 'memory is used up', more)]
  }
  const isSwapping = swapTotalBytes > 0 && swapFreeBytes / swapTotalBytes < 0.5 && availableBytes / totalBytes < 0.2
  if (availableBytes / totalBytes >= 0.05 && !isSwapping) return []
  return [complaint('risk', 'memory-scarce', 'memory is almost used up', more)]
}

function loadComplaints({ load }: MachineFacts): Complaint[] {
  if (load?.one === undefined || load.cores === undefined) return []
  const share = Math.min(load.one, load.five ?? load.one) / load.cores
  if (share < 1) return []
  const detail = `load ${load.one} on ${counted(load.cores, 'core')}`
  const fix = onHost('ps -eo pcpu,pid,user,comm | sort -rn | head -n 15')
  const cause = share < 2 ? 'all processors are busy' : 'more processes want to run than there are processors'
  return [complaint(share < 2 ? 'note' : 'risk', 'load', cause, { detail, fix })]
}

function limitComplaints({ openFiles, system }: MachineFacts): Complaint[] {
  if (openFiles === undefined || openFiles.soft === 'unlimited' || openFiles.soft >= 1024) return []
  const { soft, hard } = openFiles
  const line = shellQuote(`${system?.user ?? '*'} - nofile 65536`)
  const fix = onHost(
    hard === 'unlimited' || hard >= 1024
      ? 'ulimit -S -n "$(ulimit -H -n)"'
      : `echo ${line} | ${asRoot(system?.isRoot, 'tee -a /etc/security/limits.d/muster.conf')}`,
  )
  const detail = `ulimit -n is ${soft}`
  return [complaint(soft < 256 ? 'risk' : 'note', 'open-files', 'the limit on open files is low', { detail, fix })]
}

function sudoComplaints({ sudo, system }: MachineFacts): Complaint[] {
  if (sudo === 'missing') {
    const cause = `there is no sudo, and ${system?.user ?? 'the user'} is not root: nothing can be installed or mounted`
    const hint = 'Log in as root (user: root in hosts.yaml), or install sudo there.'
    return [complaint('risk', 'sudo-missing', cause, { hint })]
  }
  if (sudo !== 'password') return []
  const rule = `echo ${shellQuote(`${system?.user ?? '$USER'} ALL=(ALL) NOPASSWD: ALL`)}`
  const fix = onHost(`${rule} | sudo EDITOR='tee -a' visudo -f /etc/sudoers.d/muster`)
  return [complaint('note', 'sudo-password', 'sudo asks for a password', { fix })]
}

function pythonComplaints({ python, distribution, system }: MachineFacts): Complaint[] {
  if (python !== 'missing') return []
  const installer = INSTALLERS[distribution?.id ?? '']
  const fix = installer === undefined ? {} : { fix: onHost(asRoot(system?.isRoot, `${installer} python3`)) }
  return [complaint('note', 'python-missing', 'there is no python3: environments and Ray need it', fix)]
}

/** By the ID of os-release(5). */
const INSTALLERS: Readonly<Record<string, string>> = {
  debian: 'apt-get install',
  ubuntu: 'apt-get install',
  raspbian: 'apt-get install',
  fedora: 'dnf install',
  rhel: 'dnf install',
  rocky: 'dnf install',
  almalinux: 'dnf install',
  centos: 'yum install',
  amzn: 'yum install',
  alpine: 'apk add',
  arch: 'pacman -S',
  'opensuse-leap': 'zypper install',
}

function localeComplaints({ system }: MachineFacts): Complaint[] {
  const isUtf8 = (text: string) => /utf-?8/i.test(text)
  const { charmap, locale } = system ?? {}
  if (charmap === undefined ? locale === undefined || isUtf8(locale) : isUtf8(charmap)) return []
  const detail = locale === undefined ? 'LANG is not set' : `LANG is ${locale}`
  const fix = onHost(`echo 'LANG=C.UTF-8' | ${asRoot(system?.isRoot, 'tee -a /etc/environment')}`)
  return [complaint('note', 'locale', 'commands do not use UTF-8: text beyond ASCII is garbled', { detail, fix })]
}

function nameComplaints({ system }: MachineFacts, inventoryName: string | undefined): Complaint[] {
  const own = system?.hostName
  // An address is no host name to compare.
  if (own === undefined || inventoryName === undefined || /^[\d.]+$|:/.test(inventoryName)) return []
  const short = (name: string) => name.split('.')[0]?.toLowerCase()
  if (short(own) === short(inventoryName)) return []
  return [complaint('note', 'host-name', "the machine's own host name differs", { detail: own })]
}

const NOTE_MS = 100
/** Make, rsync and file servers compare times of files. */
const RISK_MS = 1_000
/** Kerberos and signed requests are refused beyond five minutes. */
const BLOCKER_MS = 300_000

const FIXES: Readonly<Record<TimeService, string>> = {
  chrony: 'chronyc makestep',
  timedatectl: 'timedatectl set-ntp true',
  ntpd: 'ntpd -gq',
}

export function clockComplaints(
  clock: ClockOffset,
  service: TimeService | undefined,
  isRoot: boolean | undefined,
): Complaint[] {
  const { offsetMs, uncertaintyMs } = clock
  const sureMs = Math.abs(offsetMs) - uncertaintyMs
  if (sureMs <= NOTE_MS) return []
  const gravity = sureMs > BLOCKER_MS ? 'blocker' : sureMs > RISK_MS ? 'risk' : 'note'
  const remedy =
    service === undefined
      ? { hint: 'Install a time service there (chrony, systemd-timesyncd).' }
      : { fix: onHost(asRoot(isRoot, FIXES[service])) }
  const cause = `the clock is ${offsetMs > 0 ? 'ahead of' : 'behind'} this machine's`
  return [complaint(gravity, 'clock-off', cause, { detail: formatOffset(clock), ...remedy })]
}

/** `3.2 s (± 12 ms)` */
export function formatOffset({ offsetMs, uncertaintyMs }: ClockOffset): string {
  return `${formatDuration(Math.abs(offsetMs))} (± ${Math.ceil(uncertaintyMs)} ms)`
}

/** When all hosts agree with each other and not with this machine, it is this machine's clock that is off. */
export function ownClockFindings(clocks: ReadonlyMap<string, ClockOffset>): Finding[] {
  if (clocks.size < 2) return []
  const offsets = [...clocks.values()].map(({ offsetMs }) => offsetMs)
  const [low, high] = [Math.min(...offsets), Math.max(...offsets)]
  const slackMs = 2 * Math.max(...[...clocks.values()].map(({ uncertaintyMs }) => uncertaintyMs))
  const isOff = low > RISK_MS || high < -RISK_MS
  if (!isOff || high - low > NOTE_MS + slackMs) return []
  return [...clocks.keys()].map((host) => ({
    host,
    gravity: 'note',
    id: 'own-clock',
    cause: "the hosts' clocks agree with each other, so this machine's clock is off",
    fix: { where: 'here', command: 'sudo timedatectl set-ntp true' },
  }))
}
