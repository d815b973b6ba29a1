/**
 * The server: one file of Muster's own in /etc/exports.d, and the service. Other files are read and never changed. Because
 * `exportfs -ra` reads them all, and a syntax error in one would end exports in use, nothing is done while one has any.
 */
import { defined } from '../../base/defined.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { changedLines } from '../kernel/block.ts'
import { bytesOf, type FileState, MADE_BY_MUSTER, removeFile, writeFile } from '../kernel/files.ts'
import type { Finding } from '../kernel/finding.ts'
import { type Action, blocked, ifKnown, nothing, type Step, steps, type Verdict } from '../kernel/operation.ts'
import { type SystemServiceState, serviceScript } from '../kernel/services.ts'
import { agrees, type Exports, formatExport, isSameExport, parseExports, problemOfOptions } from './exports.ts'
import { allKnown, EXPORTS_FILE, type HostFactsOfNfs, type MountPoint, pointAt, SERVICE } from './facts.ts'
import type { Share } from './wanted.ts'

/** Notes in the exports file about what `down` undoes. */
const STARTED = '# Muster started the server.'
const ENABLED = '# Muster switched the server on at boot.'
/** File systems without a device or a UUID: exports of them carry an fsid. */
const NEEDS_FSID = ['tmpfs', 'ramfs', 'overlayfs', 'overlay', 'fuseblk', 'fuse']

export function planExports(host: string, own: HostFactsOfNfs, shares: readonly Share[]): Verdict {
  const facts = allKnown(host, own, ['ownExports', 'foreignExports', 'active', 'localPoints', 'service'])
  if ('kind' in facts) return facts as Verdict
  const { ownExports, foreignExports, active, service } = facts
  const findings = [
    ...problemsOf(host, foreignExports),
    ...shares.flatMap((share) => obstaclesOf(host, share, pointAt(own, share.path), foreignExports)),
    ...duplicatesOf(host, shares),
  ]
  if (ownExports.kind === 'other') findings.push(blocker(host, 'not-a-file', `${EXPORTS_FILE}: ${ownExports.because}`))
  if (findings.length > 0) return { kind: 'blocked', findings }

  const lines = shares.flatMap((share) => {
    const clients = share.exportTo.filter((client) => !isForeign(share, client, foreignExports))
    return clients.length === 0 ? [] : [formatExport(share.path, clients, share.options.join(','))]
  })
  const text = ownExports.kind === 'file' ? ownExports.text : ''
  const content = lines.length === 0 ? '' : `${[MADE_BY_MUSTER, ...notesOf(text, service), ...lines].join('\n')}\n`
  const directories = shares.map(({ path, mode: declared }): Step | false => {
    const point = pointAt(own, path)
    const isMissing = point?.kind === 'absent'
    const mode = declared ?? '755'
    const isAsDeclared =
      declared === undefined ||
      (point?.kind === 'directory' && Number.parseInt(point.mode, 8) === Number.parseInt(declared, 8))
    const word = shellQuote(path)
    return (
      (isMissing || !isAsDeclared) && {
        id: `directory ${path}`,
        title: isMissing ? `create ${path}` : `set the mode of ${path} to ${mode}`,
        changes: [`${isMissing ? '+' : '~'} ${path} (mode ${mode})`],
        run: { script: `mkdir -p ${word} && chmod ${mode} ${word}`, asRoot: true },
      }
    )
  })
  const isActive = shares.every((share) =>
    share.exportTo.every((client) =>
      active.some((each) => {
        const isClient = each.client === client || each.client.startsWith(`${client}.`)
        return each.path === share.path && isClient && agrees(each.options, share.options)
      }),
    ),
  )
  const apply = (text !== content || !isActive) && exportStep(ownExports, text, content, shares)
  const because = `${shares.map(({ path }) => path).join(' and ')} exported`
  return steps(text === '' && !isActive ? 'missing' : 'differs', [...directories, apply], because)
}

/**
 * Changes a file of exports and reloads them all. What exportfs says about other files it said before, too: the step fails on
 * new messages, and if exportfs fails only after the change.
 */
const reloaded = (change: string): string => `reload() { exportfs -ra 2>&1; }
before=$(reload); was=$?
${change}said=$(reload); status=$?
# It may well be that nothing is exported any more.
new=$(printf '%s\\n' "$said" | grep -v -x -F -e 'exportfs: No file systems exported!' -e "$before")
[ -z "$new" ] && { [ $status -eq 0 ] || [ $was -ne 0 ]; } || {
  # Indented lines explain the line above.
  printf '%s\\n' "\${new:-exportfs says nothing new}" | grep -v '^ ' >&2
  echo "exportfs -ra: exit $status" >&2
  exit 1
}`

/** Writes the file, reloads the exports and checks them, and restores the old file on failure. */
function exportStep(was: FileState, text: string, content: string, shares: readonly Share[]): Step {
  const write: Action =
    content === '' && was.kind === 'file'
      ? removeFile({ path: EXPORTS_FILE, was })
      : writeFile({ path: EXPORTS_FILE, was }, { content: [bytesOf(content)], mode: '644' })
  const isChanged = text !== content
  const stdin = isChanged ? write.stdin : undefined
  const expected = shares.flatMap(({ path, exportTo }) => exportTo.map((client) => `${path} ${client}`))
  return {
    id: 'apply',
    title: isChanged ? `write ${EXPORTS_FILE} and reload the exports` : 'reload the exports',
    changes: isChanged
      ? changedLines(text, content)
      : expected.map((each) => `+ ${each}, in the file but not exported`),
    run: {
      script: `command -v exportfs > /dev/null || { echo 'there is no exportfs' >&2; exit 1; }
${reloaded(isChanged ? `${write.script}\n` : '')}`,
      ...defined({ stdin }),
      asRoot: true,
    },
    check: {
      script: `${isChanged ? fileCheck(content) : ''}${exportedCheck(expected, 'shown')}`,
      asRoot: true,
      lack: 'the kernel does not export all of it',
    },
    ...defined({ undo: isChanged ? restore(was) : undefined }),
  }
}

/** Ends with exit code 1 unless the file has this content; empty: unless there is none. */
function fileCheck(content: string): string {
  const isThere =
    content === '' ? `[ ! -e ${EXPORTS_FILE} ]` : `printf %s ${shellQuote(content)} | cmp -s - ${EXPORTS_FILE}`
  return `${isThere} || { echo '${EXPORTS_FILE} is not as it should be' >&2; exit 1; }\n`
}

/** Exit code 0: each `PATH CLIENT` is in \`exportfs -s\`, or is not. */
function exportedCheck(exports: readonly string[], wanted: 'shown' | 'hidden'): string {
  const checks = exports.map((each) => {
    // exportfs may have made the name of a client longer: `m8.example.org`.
    const shown = `*${shellQuote(`\n${each}(`)}* | *${shellQuote(`\n${each}.`)}*`
    const failed = (problem: string) => `echo ${shellQuote(`exportfs -s ${problem} ${each}`)} >&2; exit 1`
    return wanted === 'shown'
      ? `case $shown in ${shown}) ;; *) ${failed('does not show')};; esac`
      : `case $shown in ${shown}) ${failed('still shows')};; esac`
  })
  return `shown=$(exportfs -s 2> /dev/null | tr -s ' \\t' ' ')
shown="
$shown"
${checks.join('\n')}`
}

function restore(was: FileState): Action & { readonly title: string } {
  const title = `restore ${EXPORTS_FILE}`
  if (was.kind !== 'file') return { title, script: reloaded(`rm -f ${EXPORTS_FILE}\n`), asRoot: true }
  const back = `${EXPORTS_FILE}.back`
  return {
    title,
    script: reloaded(`cat > ${back} && chmod ${was.mode} ${back} && mv -f ${back} ${EXPORTS_FILE} || exit 1\n`),
    stdin: [bytesOf(was.text)],
    asRoot: true,
  }
}

export function planService(host: string, own: HostFactsOfNfs): Verdict {
  return ifKnown(host, 'the NFS server', own.service, (service) => {
    if (service.isRunning && service.isEnabled !== false) {
      return nothing(`the NFS server is running (${service.manager})`)
    }
    const verdict = steps(service.isRunning ? 'differs' : 'missing', [
      service.isEnabled === false && serviceStep(service, 'enable', 'start the NFS server at boot'),
      !service.isRunning && serviceStep(service, 'start', 'start the NFS server'),
    ])
    return verdict.kind === 'steps'
      ? verdict
      : blocked(host, 'no-service', 'cannot start the NFS server: nothing on the host manages services')
  })
}

function serviceStep(
  { manager }: SystemServiceState,
  action: 'enable' | 'start' | 'stop' | 'disable',
  title: string,
): Step | undefined {
  const script = serviceScript(SERVICE, manager, action)
  if (script === undefined) return undefined
  const running = SERVICE.byHand?.isRunning
  // A script of init.d may start nothing and still exit with 0.
  const checks = { start: running, stop: `! { ${running}; } 2> /dev/null`, enable: undefined, disable: undefined }
  const checked = checks[action]
  const lack = action === 'start' ? 'the NFS server does not run' : 'the NFS server still runs'
  const check = checked === undefined ? undefined : { script: checked, asRoot: true, lack }
  // Scripts of init.d stop the threads with a signal, which newer kernels ignore.
  const more = action === 'stop' ? '\nrpc.nfsd 0 2> /dev/null || :' : ''
  const sign = action === 'enable' || action === 'start' ? '+' : '-'
  const state = action === 'enable' || action === 'disable' ? 'at boot' : 'running'
  return {
    id: action,
    title,
    changes: [`${sign} NFS server ${state} (${manager})`],
    run: { script: `${script}${more}`, asRoot: true },
    ...defined({ check }),
  }
}

export function planUnexport(host: string, own: HostFactsOfNfs): Verdict {
  const facts = allKnown(host, own, ['ownExports', 'foreignExports', 'service'])
  if ('kind' in facts) return facts as Verdict
  const { ownExports, foreignExports, service } = facts
  if (ownExports.kind !== 'file') return nothing(`there is no ${EXPORTS_FILE}`)
  const text = ownExports.text
  const isLast = foreignExports.entries.length === 0 && foreignExports.problems.length === 0
  const { script } = removeFile({ path: EXPORTS_FILE, was: ownExports })
  const foreign = foreignExports.entries.map(({ path, client }) => `${path} ${client}`)
  const ended = parseExports(text, EXPORTS_FILE)
    .entries.map(({ path, client }) => `${path} ${client}`)
    .filter((each) => !foreign.includes(each))
  return steps('differs', [
    isLast &&
      text.includes(STARTED) &&
      service.isRunning &&
      serviceStep(service, 'stop', 'stop the NFS server, which Muster started'),
    isLast &&
      text.includes(ENABLED) &&
      service.isEnabled === true &&
      serviceStep(service, 'disable', 'do not start it at boot, as before'),
    {
      id: 'remove',
      title: `remove ${EXPORTS_FILE} and end its exports`,
      changes: changedLines(text, ''),
      run: { script: reloaded(`${script}rmdir /etc/exports.d 2> /dev/null\n`), asRoot: true },
      check: {
        script: `${fileCheck('')}${exportedCheck(ended, 'hidden')}`,
        asRoot: true,
        lack: 'the kernel still exports some of it',
      },
    },
  ])
}

/** The notes of the file stay; one is added for what this run will do. */
function notesOf(text: string, { isRunning, isEnabled }: SystemServiceState): string[] {
  const has = (note: string) => text.split('\n').includes(note)
  return [
    ...(has(STARTED) || (text === '' && !isRunning) ? [STARTED] : []),
    ...(has(ENABLED) || (text === '' && isEnabled === false) ? [ENABLED] : []),
  ]
}

function obstaclesOf(host: string, share: Share, point: MountPoint | undefined, foreignExports: Exports): Finding[] {
  const { path, options, exportTo } = share
  if (point === undefined || point.kind === 'silent' || point.kind === 'stale') {
    return [blocker(host, 'path-silent', `${path} does not answer: it is on a file system whose server is gone`)]
  }
  if (point.kind === 'other') return [blocker(host, 'not-a-directory', `${path} is not a readable directory`)]
  const problem = problemOfOptions(options)
  if (problem !== undefined)
    return [blocker(host, 'export-options', `the options of ${path} in hosts.yaml: ${problem}`)]
  const found: Finding[] = []
  const hasId = options.some((each) => each.startsWith('fsid='))
  if (point.kind === 'directory' && NEEDS_FSID.includes(point.filesystem) && !hasId) {
    const hint = `Write options: "${options.join(',')},fsid=1" in hosts.yaml (another number for each such export).`
    found.push(blocker(host, 'fsid', `${path} is on ${point.filesystem}, which has no UUID`, hint))
  }
  for (const client of exportTo) {
    const other = foreignExports.entries.find((entry) => entry.path === path && entry.client === client)
    if (other === undefined || isSameExport(other.options, options)) continue
    const cause = `${other.file}:${other.line} exports ${path} to ${client} with other options (${other.options.join(',')})`
    const hint = 'Remove that line, or write its options in hosts.yaml: the first of two lines would win.'
    found.push(blocker(host, 'export-conflict', cause, hint))
  }
  return found
}

function isForeign({ path, options }: Share, client: string, { entries }: Exports): boolean {
  return entries.some((entry) => entry.path === path && entry.client === client && isSameExport(entry.options, options))
}

function duplicatesOf(host: string, shares: readonly Share[]): Finding[] {
  const exported = shares.flatMap(({ path, exportTo }) => exportTo.map((client) => `${path} to ${client}`))
  const again = exported.filter((each, index) => exported.indexOf(each) !== index)
  return again.map((each) => blocker(host, 'export-twice', `hosts.yaml exports ${each} twice`))
}

function problemsOf(host: string, { problems }: Exports): Finding[] {
  const hint = 'Fix that line first: exportfs -ra would remove its exports.'
  return problems.map(({ file, line, column, message }) =>
    blocker(host, 'exports-syntax', `${file}:${line}:${column}: ${message}`, hint),
  )
}

function blocker(host: string, id: string, cause: string, hint?: string): Finding {
  return { host, gravity: 'blocker', id, cause, ...defined({ hint }) }
}
