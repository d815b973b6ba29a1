/** Disks: out of space or inodes, read-only, noexec. */

import { formatBytes } from '../../../base/format-bytes.ts'
import { shellQuote } from '../../../base/shell-quote.ts'
import { asRoot, type Complaint, complaint, onHost } from '../../kernel/finding.ts'
import type { MachineFacts } from '../fact-script.ts'
import type { Disk, MountedDisk } from '../facts/disk.ts'

const MIB = 2 ** 20
const GIB = 2 ** 30
/** With less space than this, logs are cut off and nothing can be unpacked. */
const FULL_BYTES = 4 * MIB
const SCARCE_BYTES = 256 * MIB
const PLENTY_BYTES = 20 * GIB
const FULL_INODES = 100
const SMALL_SHM_BYTES = 256 * MIB

export function diskComplaints(facts: MachineFacts): Complaint[] {
  const isRoot = facts.system?.isRoot
  const mountOf = (point: string | undefined) => facts.mounts?.find(({ mountPoint }) => mountPoint === point)
  const complaints: Complaint[] = []
  const disks = facts.disks.filter(({ isThere }) => isThere)
  // Directories of the same file system are one.
  const fileSystems = Map.groupBy(disks, ({ device, mountPoint }) => JSON.stringify([device, mountPoint]))
  for (const group of fileSystems.values()) {
    const [disk] = group
    if (disk === undefined) continue
    const mount = mountOf(disk.mountPoint)
    const point = disk.mountPoint ?? disk.path
    const others = group.flatMap(({ path }) => (path === point ? [] : path))
    const place = others.length === 0 ? point : `${point} (with ${others.join(', ')})`
    // A read-only image is always full.
    if (mount?.options.includes('ro')) continue
    complaints.push(...spaceComplaints(disk, place, isRoot), ...inodeComplaints(disk, place, isRoot))
  }
  const root = mountOf('/')
  if (root?.options.includes('ro')) complaints.push(readOnlyRoot(root, isRoot))
  const tmp = facts.disks.find(({ path }) => path === '/tmp')
  if (mountOf(tmp?.mountPoint)?.options.includes('noexec')) {
    const cause = '/tmp is mounted noexec: installers that unpack programs there fail'
    const fix = onHost(asRoot(isRoot, `mount -o remount,exec ${shellQuote(tmp?.mountPoint ?? '/tmp')}`))
    complaints.push(complaint('risk', 'tmp-noexec', cause, { fix }))
  }
  const shm = facts.disks.find(({ path }) => path === '/dev/shm')
  if (shm?.isThere && shm.mountPoint === '/dev/shm' && (shm.totalBytes ?? SMALL_SHM_BYTES) < SMALL_SHM_BYTES) {
    const cause = '/dev/shm is small: shared memory (the object store of Ray) does not fit'
    const fix = onHost(asRoot(isRoot, 'mount -o remount,size=30% /dev/shm'))
    complaints.push(complaint('note', 'shm-small', cause, { detail: formatBytes(shm.totalBytes ?? 0), fix }))
  }
  if (tmp?.isThere === false) {
    const fix = onHost(asRoot(isRoot, 'mkdir -m 1777 /tmp'))
    complaints.push(complaint('blocker', 'tmp-missing', 'there is no /tmp', { fix }))
  }
  if (facts.partials !== undefined) {
    const { count, bytes, example } = facts.partials
    const detail = `${count === 1 ? '' : `${count} files, `}${formatBytes(bytes)}${count === 1 ? '' : ', such as'} ${example}`
    const fix = { where: 'here', command: 'muster left --area copy --remove' } as const
    const cause = 'unfinished copies that are older than a week'
    complaints.push(complaint('note', 'unfinished-copies', cause, { detail, fix }))
  }
  return complaints
}

function spaceComplaints(disk: Disk, place: string, isRoot: boolean | undefined): Complaint[] {
  const { totalBytes, availableBytes, mountPoint = disk.path } = disk
  if (totalBytes === undefined || availableBytes === undefined || totalBytes === 0) return []
  const usedShare = 1 - availableBytes / totalBytes
  const detail = `${formatBytes(availableBytes)} of ${formatBytes(totalBytes)} left`
  const largest = `du -xh ${shellQuote(mountPoint)} 2>/dev/null | sort -h | tail -n 15`
  const fix = onHost(asRoot(isRoot, largest))
  if (availableBytes < FULL_BYTES || (usedShare > 0.99 && availableBytes < 16 * FULL_BYTES)) {
    return [{ gravity: 'blocker', id: 'disk-full', cause: `${place} is full`, detail, fix }]
  }
  const isScarce = usedShare > 0.95 ? availableBytes < PLENTY_BYTES : usedShare > 0.8 && availableBytes < SCARCE_BYTES
  return isScarce ? [{ gravity: 'risk', id: 'disk-scarce', cause: `${place} is almost full`, detail, fix }] : []
}

function inodeComplaints(disk: Disk, place: string, isRoot: boolean | undefined): Complaint[] {
  const { inodes, freeInodes, mountPoint = disk.path } = disk
  if (!inodes || freeInodes === undefined) return []
  const detail = `${freeInodes} of ${inodes} left`
  const fix = onHost(asRoot(isRoot, `du -x --inodes ${shellQuote(mountPoint)} 2>/dev/null | sort -n | tail -n 15`))
  if (freeInodes / inodes >= 0.05) return []
  if (freeInodes < FULL_INODES) {
    return [{ gravity: 'blocker', id: 'inodes-full', cause: `${place} has no inodes left for new files`, detail, fix }]
  }
  return [{ gravity: 'risk', id: 'inodes-scarce', cause: `${place} has few inodes left for new files`, detail, fix }]
}

/** With `errors=remount-ro` the kernel does this by itself when the disk fails. */
function readOnlyRoot(root: MountedDisk, isRoot: boolean | undefined): Complaint {
  const isAfterError = root.options.includes('errors=remount-ro')
  const [gravity, why, command] = isAfterError
    ? (['blocker', 'the kernel does this after a disk error', 'dmesg | grep -i -E "ext4|xfs|i/o error"'] as const)
    : (['risk', 'nothing can be installed', 'mount -o remount,rw /'] as const)
  const fix = onHost(asRoot(isRoot, command))
  return complaint(gravity, 'root-read-only', `the root file system is read-only: ${why}`, { fix })
}
