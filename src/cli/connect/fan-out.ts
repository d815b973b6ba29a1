/** How many hosts are worked on at once: `--fan-out`, or fewer where this process may not open enough files. */
import { MusterError } from '../../base/errors.ts'
import { freeFiles, type OpenFiles, openFiles } from '../../base/open-files.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'

const USUAL = 64
/** For Muster itself: code that is loaded later, files to copy, the terminal, the SSH agent. */
const OWN_FILES = 8
/**
 * A host has a socket or the pipes and the terminal of `ssh`, and while a program starts both ends of its pipes are open
 * here: two for each of three streams and two more.
 */
const FILES_A_HOST = 8

/** While its connection stays open: a socket, or the terminals of `ssh` and of its shell. */
const FILES_KEPT = 3

const enoughFor = (hosts: number): number => Math.max(1024, 2 * (OWN_FILES + 32 + hosts * FILES_A_HOST))

/**
 * `hosts`: how many there are. Warns on stderr when the result is below --fan-out.
 * @throws MusterError `usage` when not even one host fits
 */
export function fanOutFor(
  hosts: number,
  { fanOut = USUAL }: GlobalOptions,
  { stderr }: Pick<CliContext, 'stderr'>,
  files: OpenFiles | undefined = openFiles(),
): number {
  const wanted = Math.min(fanOut, Math.max(1, hosts))
  const room = Math.floor((freeFiles(files) - OWN_FILES) / FILES_A_HOST)
  if (files === undefined || room >= wanted) return fanOut
  const raise = `Raise the limit: ulimit -n ${enoughFor(wanted)}`
  if (room < 1)
    throw new MusterError('usage', `this process may open only ${files.limit} files, too few for a single host`, {
      hint: raise,
    })
  stderr.write(
    `muster: this process may open only ${files.limit} files: ${room} ${room === 1 ? 'host' : 'hosts'} at once instead of ${wanted}. ${raise}\n`,
  )
  return room
}

/** @throws MusterError `usage` when connections that stay open together, as those of a console, have no room. */
export function requireRoomFor(hosts: number, files: OpenFiles | undefined = openFiles()): void {
  if (files === undefined || freeFiles(files) >= OWN_FILES + hosts * FILES_KEPT) return
  throw new MusterError(
    'usage',
    `this process may open only ${files.limit} files, too few for connections to ${hosts} hosts that stay open`,
    { hint: `Raise the limit: ulimit -n ${enoughFor(hosts)}` },
  )
}
