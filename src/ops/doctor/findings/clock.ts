/** How far clocks are off, and whether it is the host's clock or this machine's. */

import { asRoot, type Complaint, type Finding, formatDuration, onHost } from '../../kernel/finding.ts'
import type { ClockOffset } from '../clock-offset.ts'
import type { TimeService } from '../facts/access.ts'

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
  const direction = offsetMs > 0 ? 'ahead of' : 'behind'
  return [
    {
      gravity: sureMs > BLOCKER_MS ? 'blocker' : sureMs > RISK_MS ? 'risk' : 'note',
      id: 'clock-off',
      cause: `the clock is ${direction} this machine's`,
      detail: formatOffset(clock),
      ...(service === undefined
        ? { hint: 'Install a time service there (chrony, systemd-timesyncd).' }
        : { fix: onHost(asRoot(isRoot, FIXES[service])) }),
    },
  ]
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
