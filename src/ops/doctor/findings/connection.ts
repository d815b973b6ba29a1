/** The login: start-up files, sshd's limits, large packets, missing facts. */

import { formatBytes } from '../../../base/format-bytes.ts'
import { shellQuote } from '../../../base/shell-quote.ts'
import { formatDuration } from '../../../base/time-text.ts'
import { asRoot, type Complaint, complaint, onHost } from '../../kernel/finding.ts'
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
    ...(factsEnd === undefined || isLossy
      ? []
      : [complaint('risk', 'no-facts', `could not read the facts of the machine: ${why(factsEnd)}`)]),
    ...(isLossy ? [] : (facts?.hanging ?? []).map(hangingComplaint)),
  ]
}

function startupComplaints(startup: Startup, shell: string | undefined): Complaint[] {
  const { end, stdout, stderr, durationMs } = startup
  const isBash = shell === undefined || /\bbash$/.test(shell)
  const files = isBash ? '~/.bashrc' : 'the start-up files of the login shell'
  const fix = isBash ? { fix: onHost(`sed -i '1i ${GUARD}' ~/.bashrc`) } : {}
  if (end.kind === 'timeout') {
    const cause = `the login shell did not run a command within ${formatDuration(durationMs)}: a start-up file or ForceCommand waits for something`
    const hint = `No command finishes, so log in by other means (console, sftp) and begin ~/.bashrc with: ${GUARD}`
    return [complaint('blocker', 'startup-hangs', cause, { hint })]
  }
  if (end.kind === 'flood') {
    const cause = `cannot run commands: the login shell ${why(end)}`
    const hint = 'Look for start-up files that print endlessly, and for ForceCommand in sshd_config.'
    return [complaint('blocker', 'no-command', cause, { hint })]
  }
  if (end.kind !== 'exit') return [complaint('blocker', 'no-command', `cannot run commands: ${why(end)}`)]
  const complaints: Complaint[] = []
  if (end.code !== 0) {
    const cause = `the login shell does not run commands: \`true\` ended with ${end.code}`
    const hint = 'Check the login shell of the user, and ForceCommand in sshd_config.'
    complaints.push(complaint('blocker', 'no-command', cause, { detail: firstLine(stderr) || firstLine(stdout), hint }))
  } else if (stdout !== '') {
    const cause = `${files} print${isBash ? 's' : ''} something before every command: scp, sftp and rsync break`
    complaints.push(complaint('risk', 'startup-prints', cause, { detail: firstLine(stdout), ...fix }))
  } else if (stderr !== '') {
    const cause = `${files} write${isBash ? 's' : ''} errors before every command`
    complaints.push(complaint('note', 'startup-complains', cause, { detail: firstLine(stderr), ...fix }))
  }
  if (durationMs > SLOW_START_MS) {
    const cause = 'the login shell is slow to start, for every command'
    complaints.push(complaint('risk', 'startup-slow', cause, { detail: formatDuration(durationMs), ...fix }))
  }
  return complaints
}

/** In a login over SSH: the network device on the route back. The facts that name it may have been lost like all large answers. */
const DEVICE_OF_ROUTE = `"$(ip -o route get "\${SSH_CONNECTION%% *}" | sed 's/.* dev //; s/ .*//')"`

function largeAnswerComplaints(answer: LargeAnswer, { facts }: Examination): Complaint[] {
  const { arrivedBytes, wantedBytes, end, durationMs } = answer
  if (arrivedBytes >= wantedBytes || end.kind === 'cancelled') return []
  const arrived = `${formatBytes(arrivedBytes)} of ${formatBytes(wantedBytes)}`
  if (end.kind === 'timeout' && arrivedBytes >= SMALL_BYTES) {
    const detail = `${arrived} in ${formatDuration(durationMs)}`
    return [{ gravity: 'risk', id: 'link-slow', cause: 'the connection to this host is slow', detail }]
  }
  if (end.kind !== 'timeout' && end.kind !== 'lost') {
    return [complaint('note', 'large-unknown', `could not test large answers: ${why(end)}`)]
  }
  const { device, mtuBytes } = facts?.route ?? {}
  const dev = device === undefined ? DEVICE_OF_ROUTE : shellQuote(device)
  const command = `ip link set dev ${dev} mtu ${Math.min(1280, mtuBytes ?? 1280)}`
  const detail = mtuBytes === undefined ? arrived : `${arrived}; ${device} sends up to ${mtuBytes} bytes`
  const cause = 'small answers arrive, large ones do not: full-size packets are lost on the way (MTU)'
  return [complaint('blocker', 'mtu', cause, { detail, fix: onHost(asRoot(facts?.system?.isRoot, command)) })]
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
    const cause = 'sshd allows few sessions per connection: next to an open shell, commands wait or fail'
    const more = { detail: `MaxSessions ${maxSessions}`, fix: setting('MaxSessions 10') }
    complaints.push(complaint('risk', 'max-sessions', cause, more))
  }
  if (maxStartups !== undefined && maxStartups.start < 4) {
    const more = { detail: `MaxStartups ${maxStartups.start}`, fix: setting('MaxStartups 10:30:100') }
    complaints.push(complaint('risk', 'max-startups', 'sshd drops connections when a few log in at once', more))
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
  gpus: 'nvidia-smi does not answer',
}

/** While no program uses the GPUs, some drivers start them again for each call. */
const SLOW_DRIVER =
  'If it is only slow, keep the driver loaded: sudo nvidia-smi -pm 1. If it hangs, look for errors: sudo dmesg | grep -i nvrm'

function hangingComplaint(probe: string): Complaint {
  const cause = HANGING[probe] ?? `reading ${probe.replaceAll('-', ' ')} got no answer`
  const isDisk = probe.startsWith('disk-')
  const gravity = isDisk || probe === 'sudo' || probe === 'gpus' ? 'risk' : 'note'
  const remedy = isDisk
    ? { fix: onHost("grep -E ' (nfs4?|cifs|fuse[^ ]*) ' /proc/mounts") }
    : probe === 'gpus'
      ? { hint: SLOW_DRIVER }
      : {}
  return complaint(gravity, isDisk ? 'disk-hangs' : 'hangs', cause, remedy)
}

function why(end: DoctorEnd): string {
  if ('reason' in end) return end.reason
  if (end.kind === 'exit') return `the shell ended with ${end.code}`
  if (end.kind === 'signal') return `the shell was ended by ${end.signal}`
  if (end.kind === 'flood') return `printed more than ${formatBytes(end.moreThanBytes)} and was cut off`
  return end.kind === 'timeout' ? 'no answer in time' : end.kind
}

function firstLine(text: string): string {
  return text.split('\n')[0]?.trim() ?? ''
}
