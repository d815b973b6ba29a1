/**
 * The client: a mount unit with systemd, else a block in /etc/fstab, and the mount itself. Mounts that are not Muster's stay;
 * nothing is mounted over a directory with files, and no mount in use is removed.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { blockOf, withBlock, withoutBlock } from '../kernel/block.ts'
import { bytesOf, type FileState, MADE_BY_MUSTER, removeFile, writeFile } from '../kernel/files.ts'
import { type Action, blocked, nothing, type Step, steps, type Verdict } from '../kernel/operation.ts'
import { allKnown, type HostFactsOfNfs, type MountPoint, pointAt, unitPath } from './facts.ts'
import { fstabLine, isMountOf, isNfs, missingOptions, mountAt, pointOf, unitName } from './mounts.ts'
import { type Share, sourceOf } from './wanted.ts'

const MADE = '# Muster made the directory.'
/** Seconds; a mount that hangs is given up. */
const MOUNT_LIMIT_S = 40
const UNMOUNT_LIMIT_S = 20

export function planMount(host: string, own: HostFactsOfNfs, share: Share): Verdict {
  const facts = allKnown(host, own, ['mounts', 'fstab', 'hasSystemd', `unit ${share.point}`])
  if ('kind' in facts) return facts as Verdict
  const { mounts, hasSystemd } = facts
  const point = pointAt(own, share.point)
  const mounted = mountAt(mounts, share.point)
  const there = mounted !== undefined && mounted.type !== 'autofs' ? mounted : undefined
  const isRight = there !== undefined && isMountOf(there, share.serverAddress, share.path)
  const obstacle = isRight ? undefined : obstacleOf(host, share, there, point)
  if (obstacle !== undefined) return obstacle

  const file = mountFileOf(share, facts)
  if (file.was.kind === 'other') return blocked(host, 'not-a-file', `${file.path}: ${file.was.because}`)
  const isOthers = hasSystemd && file.was.kind === 'file' && !file.was.text.startsWith(MADE_BY_MUSTER)
  const foreign = foreignLines(facts.fstab, share)
  if (isOthers || (foreign.length > 0 && !isRight)) {
    const cause = `${isOthers ? file.path : '/etc/fstab'} declares ${share.point} already, but not from Muster`
    return blocked(host, 'mount-declared', cause, 'Remove that, or leave this mount out of hosts.yaml.')
  }

  const old = file.lines
  const isMade = old.includes(MADE) || (old.length === 0 && point?.kind === 'absent')
  const lines = declarationOf(share, hasSystemd, isMade)
  const differing = isRight ? missingOptions(there, share.mountOptions) : []
  const isStale = isRight && point?.kind === 'stale'
  const write = writeFile(file, { content: [bytesOf(file.render(lines) ?? '')], mode: '644' })
  const reload = hasSystemd
    ? `\nsystemctl daemon-reload && systemctl enable --quiet ${shellQuote(unitName(share.point))}`
    : ''
  const declare = {
    id: 'declare',
    title: hasSystemd ? `write ${file.path} and enable it` : `add ${share.point} to /etc/fstab`,
    changes: [
      ...old.filter((line) => !lines.includes(line)).map((line) => `- ${line}`),
      ...shownLines(lines).flatMap((line) => (old.includes(line) ? [] : [`+ ${line}`])),
    ],
    run: { ...write, script: `${write.script}${reload}`, asRoot: true },
  }
  const why = isStale ? 'its handle is stale' : `${differing.join(', ')} is not in effect`
  const isOther = isStale || differing.length > 0
  const needed = [
    foreign.length === 0 && lines.join('\n') !== old.join('\n') && declare,
    isOther && unmountStep(share, there?.source, isStale, why),
    (!isRight || isOther) && mountStep(share, hasSystemd),
  ]
  const because = `${sourceOf(share)} is mounted at ${share.point}`
  return { ...steps(isRight ? 'differs' : 'missing', needed, because), ...(isOther ? { because: why } : {}) }
}

/** The lines of a declaration that say something. */
function shownLines(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith('['))
}

function obstacleOf(
  host: string,
  { point: path }: Share,
  there: { readonly source: string; readonly type: string } | undefined,
  point: MountPoint | undefined,
): Verdict | undefined {
  if (there !== undefined) {
    const hint = 'Unmount it, or mount at another directory.'
    return blocked(host, 'mount-point-taken', `${there.source} (${there.type}) is mounted at ${path}`, hint)
  }
  if (point === undefined || point.kind === 'silent' || point.kind === 'stale') {
    const hint = 'Something above it is mounted from a server that is gone.'
    return blocked(host, 'mount-point-silent', `${path} does not answer`, hint)
  }
  if (point.kind === 'other') return blocked(host, 'not-a-directory', `${path} is not a directory`, 'Move it away.')
  if (point.kind !== 'directory' || point.isEmpty) return undefined
  const hint = `Move them away; ls -A ${shellQuote(path)} shows them.`
  return blocked(host, 'files-below', `there are files in ${path}, which a mount would hide`, hint)
}

/** The file of a host that declares the mount: a unit of systemd, or /etc/fstab. */
function mountFileOf(
  share: Pick<Share, 'point'>,
  facts: { readonly hasSystemd: boolean; readonly fstab: FileState; readonly [unit: `unit ${string}`]: FileState },
) {
  if (facts.hasSystemd) {
    const was: FileState = facts[`unit ${share.point}`] ?? { kind: 'none' }
    const lines = was.kind !== 'file' || was.text === '' ? [] : was.text.replace(/\n$/, '').split('\n')
    const render = (next: readonly string[]) => (next.length === 0 ? undefined : `${next.join('\n')}\n`)
    return { path: unitPath(share.point), was, lines, render }
  }
  const was = facts.fstab
  const text = was.kind === 'file' ? was.text : undefined
  const name = blockName(share)
  const lines = text === undefined ? [] : (blockOf(text, name) ?? [])
  const render = (next: readonly string[]) =>
    next.length === 0 ? withoutBlock(text ?? '', name) : withBlock(text, name, next, 'bottom')
  return { path: '/etc/fstab', was, lines, render }
}

/** Each mount has its own block, so that it can be removed alone. */
function blockName({ point }: Pick<Share, 'point'>): string {
  return `nfs ${unitName(point).replace(/\.mount$/, '')}`
}

/** Where Muster's blocks in fstab mount something. */
export function declaredPoints(fstab: FileState): readonly string[] {
  if (fstab.kind !== 'file') return []
  const names = [...fstab.text.matchAll(/^# >>> muster (nfs [^\s:]+)[: ]/gm)].flatMap(([, name]) => name ?? [])
  return names.flatMap((name) => blockOf(fstab.text, name)?.flatMap((line) => pointOf(line) ?? []) ?? [])
}

function declarationOf(share: Share, hasSystemd: boolean, isMade: boolean): string[] {
  const notes = isMade ? [MADE] : []
  const options = share.mountOptions.join(',')
  if (!hasSystemd) return [...notes, fstabLine(sourceOf(share), share.point, options)]
  const value = (text: string) => text.replaceAll('%', '%%')
  return [
    MADE_BY_MUSTER,
    ...notes,
    '[Unit]',
    'After=network-online.target',
    'Wants=network-online.target',
    '[Mount]',
    `What=${value(sourceOf(share))}`,
    `Where=${value(share.point)}`,
    'Type=nfs',
    `Options=${value(options)}`,
    'TimeoutSec=30',
    '[Install]',
    'WantedBy=remote-fs.target',
  ]
}

/** Lines of fstab for the same directory that are not in the block. */
function foreignLines(was: FileState, share: Share): string[] {
  if (was.kind !== 'file') return []
  const rest = withoutBlock(was.text, blockName(share)) ?? ''
  return rest.split('\n').filter((line) => !line.startsWith('#') && line.trim().split(/\s+/)[1] === share.point)
}

function mountedCheck(share: Share): string {
  return `while read -r source point type rest; do
  case $type in nfs | nfs4) [ "$(printf %b "$point")" != ${shellQuote(share.point)} ] || exit 0;; esac
done < /proc/mounts
echo ${shellQuote(`${share.point} is not mounted`)} >&2
exit 1`
}

const HINTS = `case $said in
  *statd*) echo 'hint: NFSv3 locks need rpc.statd here; write mount_options: "vers=4.2", or nolock where no two hosts lock the same file' >&2;;
  *'access denied'*) echo 'hint: the server exports it to other addresses than the one this host comes from; see export_to' >&2;;
  *refused* | *'timed out'* | *'No route'*) echo 'hint: port 2049 of the server does not answer: is its NFS server running, and its firewall open?' >&2;;
  *'No such file'*) echo 'hint: with NFSv4 the path begins below an export with fsid=0, if the server has one' >&2;;
esac`

function mountStep(share: Share, hasSystemd: boolean): Step {
  const unit = shellQuote(unitName(share.point))
  const point = shellQuote(share.point)
  const command = hasSystemd
    ? `systemctl reset-failed ${unit} 2> /dev/null; said=$(systemctl start ${unit} 2>&1); status=$?
[ $status -eq 0 ] || said=$(journalctl -q -o cat -n 4 -u ${unit} 2> /dev/null | grep mount || printf '%s\\n' "$said")`
    : `said=$(timeout -k 5 ${MOUNT_LIMIT_S} mount ${point} 2>&1 < /dev/null); status=$?`
  return {
    id: 'mount',
    title: `mount ${sourceOf(share)} at ${share.point}`,
    changes: [`+ ${sourceOf(share)} on ${share.point} (${share.mountOptions.join(',')})`],
    run: {
      script: `[ -d ${point} ] || mkdir -p ${point} || exit 1
${command}
[ $status -eq 0 ] && exit 0
printf '%s\\n' "$said" >&2
${HINTS}
exit $status`,
      asRoot: true,
      timeoutMs: (MOUNT_LIMIT_S + 20) * 1000,
    },
    check: {
      script: mountedCheck(share),
      asRoot: true,
      lack: `${sourceOf(share)} is not mounted at ${share.point} as declared`,
    },
  }
}

function unmountStep({ point }: Pick<Share, 'point'>, source: string | undefined, isForced: boolean, why = ''): Step {
  const title = `unmount ${point}${why === '' ? '' : `: ${why}`}`
  return { id: 'unmount', title, changes: [`- ${source} on ${point}`], run: unmount(point, isForced) }
}

/**
 * A mount in use stays, and the processes that use it are named. Links in /proc are listed but never followed, so that this does not
 * wait for a server. If the server is gone and no process uses the mount, it is unmounted by force, and lazily as a last resort.
 */
function unmount(point: string, isForced: boolean): Action {
  const last = `umount -f "$p" 2> /dev/null || { umount -l "$p" && echo "$p was unmounted lazily: its server does not answer"; }`
  return {
    script: `p=${shellQuote(point)}
is_there() {
  while read -r _ at _; do [ "$(printf %b "$at")" != "$p" ] || return 0; done < /proc/mounts
  return 1
}
is_there || exit 0
said=$(timeout -s KILL ${UNMOUNT_LIMIT_S} umount "$p" 2>&1 < /dev/null) && exit 0
held=$(ls -ld /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/exe /proc/[0-9]*/fd/* 2> /dev/null |
  sed -n 's|.* /proc/\\([0-9]*\\)/[^ ]* -> |\\1 |p' | while read -r process to; do
    case $to in "$p" | "$p"/*) echo "$process";; esac
  done | sort -un | head -n 20)
for process in $held; do
  echo "$p is in use by process $process ($(tr '\\000' ' ' < /proc/$process/cmdline 2> /dev/null | head -c 100))" >&2
done
[ -z "$held" ] || exit 1
${isForced ? `${last}\nexit` : `printf '%s\\n' "\${said:-umount was given up after ${UNMOUNT_LIMIT_S} s}" >&2\nexit 1`}`,
    asRoot: true,
    timeoutMs: (UNMOUNT_LIMIT_S + 60) * 1000,
  }
}

export function planUnmount(host: string, own: HostFactsOfNfs, share: Pick<Share, 'point'>): Verdict {
  const facts = allKnown(host, own, ['mounts', 'fstab', 'hasSystemd', `unit ${share.point}`])
  if ('kind' in facts) return facts as Verdict
  const { mounts, hasSystemd } = facts
  const file = mountFileOf(share, facts)
  const isOwn = hasSystemd ? file.lines[0] === MADE_BY_MUSTER : file.lines.length > 0
  if (file.was.kind !== 'file' || !isOwn) return nothing(`Muster declares no mount at ${share.point}`)
  const point = pointAt(own, share.point)
  const there = mountAt(mounts, share.point)
  const isGone = point === undefined || point.kind === 'silent' || point.kind === 'stale'
  const unit = shellQuote(unitName(share.point))
  const rest = file.render([])
  const change = { path: file.path, was: file.was }
  const write =
    rest === undefined ? removeFile(change) : writeFile(change, { content: [bytesOf(rest)], mode: '644', copy: 'drop' })
  const disable = hasSystemd ? `systemctl disable --quiet ${unit} 2> /dev/null || :\n` : ''
  const reload = hasSystemd ? '\nsystemctl daemon-reload' : ''
  const isMade = file.lines.includes(MADE)
  const forget = {
    id: 'forget',
    title: hasSystemd ? `remove ${file.path}` : `remove ${share.point} from /etc/fstab`,
    changes: shownLines(file.lines).map((line) => `- ${line}`),
    // The directory is removed first, because the file that is removed next notes that Muster made it.
    run: {
      ...write,
      script: `${isMade ? `rmdir ${shellQuote(share.point)} 2> /dev/null\n` : ''}${disable}${write.script}${reload}`,
      asRoot: true,
    },
  }
  return steps('differs', [there !== undefined && isNfs(there) && unmountStep(share, there.source, isGone), forget])
}
