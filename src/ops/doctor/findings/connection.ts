/** The login: start-up files, sshd's limits, large packets, missing facts. */

import { formatBytes } from '../../../base/format-bytes.ts'
import { asRoot, type Complaint, formatDuration, onHost } from '../../kernel/finding.ts'
import type { Examination, LargeAnswer, Startup } from '../examine-host.ts'
import type { DoctorEnd } from '../host-port.ts'

const SLOW_START_MS = 1_500
/** If less than this arrives of a large answer, only small packets get through. */
const SMALL_BYTES = 8 * 1024
const GUARD = 'case $- in *i*) ;; *) return ;; esac'

export function connectionComplaints(examination: Examination): Complaint[] {
  const { startup, facts, factsEnd, largeAnswer } = examination
  const large = largeAnswer === undefined ? [] : largeAnswerComplaints(largeAnswer, examination)
  // If packets are lost, missing facts say nothing about the machine.
  const isLossy = large.some(({ id }) => id === 'mtu')
  return [
    ...startupComplaints(startup, facts?.system?.loginShell),
    ...large,
    ...sshdComplaints(examination),
    ...(factsEnd === undefined || isLossy ? [] : [noFacts(factsEnd)]),
    ...(isLossy ? [] : (facts?.hanging ?? []).map(hangingComplaint)),
  ]
}

function startupComplaints(startup: Startup, shell: string | undefined): Complaint[] {
  const { end, stdout, stderr, durationMs } = startup
  const isBash = shell === undefined || /\bbash$/.test(shell)
  const files = isBash ? '~/.bashrc' : 'the start-up files of the login shell'
  const fix = isBash ? { fix: onHost(`sed -i '1i ${GUARD}' ~/.bashrc`) } : {}
  if (end.kind === 'timeout') {
    return [
      {
        gravity: 'blocker',
        id: 'startup-hangs',
        cause: `the login shell did not run a command within ${formatDuration(durationMs)}: a start-up file or ForceCommand waits for something`,
        hint: `No command finishes, so log in by other means (console, sftp) and begin ~/.bashrc with: ${GUARD}`,
      },
    ]
  }
  if (end.kind !== 'exit') return [{ gravity: 'blocker', id: 'no-command', cause: `cannot run commands: ${why(end)}` }]
  const complaints: Complaint[] = []
  if (end.code !== 0) {
    complaints.push({
      gravity: 'blocker',
      id: 'no-command',
      cause: `the login shell does not run commands: \`true\` ended with ${end.code}`,
      detail: firstLine(stderr) || firstLine(stdout),
      hint: 'Check the login shell of the user, and ForceCommand in sshd_config.',
    })
  } else if (stdout !== '') {
    complaints.push({
      gravity: 'risk',
      id: 'startup-prints',
      cause: `${files} print${isBash ? 's' : ''} something before every command: scp, sftp and rsync break`,
      detail: firstLine(stdout),
      ...fix,
    })
  } else if (stderr !== '') {
    complaints.push({
      gravity: 'note',
      id: 'startup-complains',
      cause: `${files} write${isBash ? 's' : ''} errors before every command`,
      detail: firstLine(stderr),
      ...fix,
    })
  }
  if (durationMs > SLOW_START_MS) {
    complaints.push({
      gravity: 'risk',
      id: 'startup-slow',
      cause: 'the login shell is slow to start, for every command',
      detail: formatDuration(durationMs),
      ...fix,
    })
  }
  return complaints
}

function largeAnswerComplaints(answer: LargeAnswer, { facts }: Examination): Complaint[] {
  const { arrivedBytes, wantedBytes, end, durationMs } = answer
  if (arrivedBytes >= wantedBytes || end.kind === 'cancelled') return []
  const arrived = `${formatBytes(arrivedBytes)} of ${formatBytes(wantedBytes)}`
  if (end.kind === 'timeout' && arrivedBytes >= SMALL_BYTES) {
    const detail = `${arrived} in ${formatDuration(durationMs)}`
    return [{ gravity: 'risk', id: 'link-slow', cause: 'the connection to this host is slow', detail }]
  }
  if (end.kind !== 'timeout' && end.kind !== 'lost') {
    return [{ gravity: 'note', id: 'large-unknown', cause: `could not test large answers: ${why(end)}` }]
  }
  const { device, mtuBytes } = facts?.route ?? {}
  const isRoot = facts?.system?.isRoot
  return [
    {
      gravity: 'blocker',
      id: 'mtu',
      cause: 'small answers arrive, large ones do not: full-size packets are lost on the way (MTU)',
      detail: mtuBytes === undefined ? arrived : `${arrived}; ${device} sends up to ${mtuBytes} bytes`,
      fix: onHost(asRoot(isRoot, `ip link set dev ${device ?? 'DEVICE'} mtu ${Math.min(1280, mtuBytes ?? 1280)}`)),
    },
  ]
}

function sshdComplaints({ facts }: Examination): Complaint[] {
  const { maxSessions, maxStartups } = facts?.sshd ?? {}
  const isRoot = facts?.system?.isRoot
  const setting = (line: string) =>
    onHost(
      `echo '${line}' | ${asRoot(isRoot, 'tee -a /etc/ssh/sshd_config.d/00-muster.conf')} && ${asRoot(isRoot, 'systemctl reload ssh')}`,
    )
  const complaints: Complaint[] = []
  if (maxSessions !== undefined && maxSessions < 4) {
    complaints.push({
      gravity: 'risk',
      id: 'max-sessions',
      cause: 'sshd allows few sessions per connection: next to an open shell, commands wait or fail',
      detail: `MaxSessions ${maxSessions}`,
      fix: setting('MaxSessions 10'),
    })
  }
  if (maxStartups !== undefined && maxStartups.start < 4) {
    complaints.push({
      gravity: 'risk',
      id: 'max-startups',
      cause: 'sshd drops connections when a few log in at once',
      detail: `MaxStartups ${maxStartups.start}`,
      fix: setting('MaxStartups 10:30:100'),
    })
  }
  return complaints
}

const HANGING: Readonly<Record<string, string>> = {
  'disk-root': 'df of / does not answer',
  'disk-tmp': 'df of /tmp does not answer: is its file server down?',
  'disk-home': 'df of the home directory does not answer: is its file server down?',
  'disk-var': 'df of /var does not answer: is its file server down?',
  'disk-shm': 'df of /dev/shm does not answer',
  sudo: 'sudo does not answer: does it wait for a directory service?',
}

function hangingComplaint(probe: string): Complaint {
  const cause = HANGING[probe] ?? `reading ${probe.replaceAll('-', ' ')} got no answer`
  const isDisk = probe.startsWith('disk-')
  return {
    gravity: isDisk || probe === 'sudo' ? 'risk' : 'note',
    id: isDisk ? 'disk-hangs' : 'hangs',
    cause,
    ...(isDisk ? { fix: onHost("grep -E ' (nfs4?|cifs|fuse[^ ]*) ' /proc/mounts") } : {}),
  }
}

function noFacts(end: DoctorEnd): Complaint {
  return { gravity: 'risk', id: 'no-facts', cause: `could not read the facts of the machine: ${why(end)}` }
}

function why(end: DoctorEnd): string {
  switch (end.kind) {
    case 'exit':
      return `the shell ended with ${end.code}`
    case 'signal':
      return `the shell was ended by ${end.signal}`
    case 'lost':
    case 'refused':
      return end.reason
    case 'timeout':
      return 'no answer in time'
    case 'enough':
    case 'cancelled':
      return end.kind
  }
}

function firstLine(text: string): string {
  return text.split('\n')[0]?.trim() ?? ''
}
