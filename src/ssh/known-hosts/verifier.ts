/** Host keys against known_hosts: known, changed, revoked, or new and reviewed by the user. It fails closed, and rewrites no line. */
import { constants } from 'node:fs'
import { chmod, type FileHandle, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Clock, systemClock } from '../../base/clock.ts'
import { fileReason, MusterError, messageOf } from '../../base/errors.ts'
import { makeDirectories } from '../../base/make-directories.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { formatHostSpec } from '../../inventory/host-name.ts'
import {
  fingerprintOf,
  formatKnownHostsLine,
  KnownHosts,
  type KnownHostsEntry,
  keyTypeOf,
  keyTypeTitle,
  lookupNameOf,
  parseKnownHosts,
  secondLookupNameOf,
  tooShortRsa,
} from '../../inventory/known-hosts/parse.ts'
import type { HostKeyReviewer, HostKeyVerdict, HostKeyVerifier, NewHostKey } from '../questions.ts'
import { sshWords } from '../ssh-words.ts'

type HostKeyVerifierOptions = {
  /** Decides about new keys when ssh_config says `ask`; undefined: they are refused. */
  readonly reviewer?: HostKeyReviewer
  readonly clock?: Clock
  /** A new key was accepted but could not be recorded: printable, one line. */
  onWarning?(message: string): void
}

export function createHostKeyVerifier(options: HostKeyVerifierOptions = {}): HostKeyVerifier {
  const files = new KnownHostsFiles()
  const reviews =
    options.reviewer === undefined ? undefined : new ReviewQueue(options.reviewer, options.clock ?? systemClock)
  /** Accepted keys that no file has kept (/dev/null, a full disk): another key in the same run has changed. */
  const unkept = new Map<string, KnownHostsEntry>()

  const namingFor = async (endpoint: Endpoint): Promise<NamingEntries> => {
    const inFiles = await files.read([...endpoint.knownHostsFiles, ...endpoint.globalKnownHostsFiles])
    return (name) => {
      const found = inFiles(name)
      const accepted = unkept.get(unkeptKey(endpoint, name))
      return accepted === undefined || found.some(({ marker }) => marker === 'none') ? found : [...found, accepted]
    }
  }

  const record = async (endpoint: Endpoint, key: Uint8Array): Promise<void> => {
    const [file] = endpoint.knownHostsFiles
    if (file === undefined) return
    const name = lookupNameOf(endpoint)
    try {
      await files.add(file, name, key, endpoint.hashKnownHosts)
    } catch (error) {
      options.onWarning?.(messageOf(error))
    }
    // With `no` and no file, nothing is to be remembered.
    if (endpoint.strictHostKeyChecking === 'no') return
    const isKept = judgeHostKey(await files.read(endpoint.knownHostsFiles), endpoint, key).kind === 'known'
    if (isKept) return
    const [entry] = parseKnownHosts(formatKnownHostsLine(name, key, false), file)
    if (entry !== undefined) unkept.set(unkeptKey(endpoint, name), { ...entry, line: 0 })
  }

  const verdictOnNewKey = async (endpoint: Endpoint, key: Uint8Array, signal: AbortSignal): Promise<HostKeyVerdict> => {
    const shown = describeKey(endpoint, key)
    if (endpoint.knownHostsFiles.length === 0) {
      return refused(
        `its key is not in known_hosts, and UserKnownHostsFile none leaves no file to record it in: ${shown}`,
        `Set UserKnownHostsFile to a file for ${printable(endpoint.host)}; ssh accepts no new key without one either.`,
      )
    }
    switch (endpoint.strictHostKeyChecking) {
      case 'yes':
        return refused(
          `its key is not in known_hosts, and StrictHostKeyChecking is yes: ${shown}`,
          `Compare the fingerprint with the machine's own, then connect once with ssh -o StrictHostKeyChecking=ask ${sshWords(endpoint)}`,
        )
      case 'accept-new':
      case 'no':
        await record(endpoint, key)
        return { ok: true }
      case 'ask':
        switch (await reviews?.ask(endpoint, key, signal)) {
          case undefined:
            return refused(
              `its key is not in known_hosts, and there is no terminal to ask on: ${shown}`,
              howToAdd(endpoint, keyTypeOf(key)),
            )
          case false:
            return refused(`its new key was not accepted: ${shown}`, 'Reconnect to review the key again.')
          case true:
            await record(endpoint, key)
            return { ok: true }
        }
    }
  }

  return {
    async verify(endpoint, key, signal) {
      const isTooShort = tooShortRsa(key, endpoint.requiredRsaBits)
      if (isTooShort !== undefined) {
        return refused(
          `${describeKey(endpoint, key)} ${isTooShort}`,
          'Make a longer host key there, or one of another type: ssh-keygen -A.',
        )
      }
      const judgement = judgeHostKey(await namingFor(endpoint), endpoint, key)
      switch (judgement.kind) {
        case 'known':
          return { ok: true }
        case 'changed':
          return changed(endpoint, key, judgement.offending)
        case 'revoked':
          return refused(
            `its key is marked as revoked in ${placeOf(judgement.entry)}, and may have been stolen: ${describeKey(endpoint, key)}`,
            'Ask who runs the machine for its new key.',
          )
        case 'authority-only':
          return refused(
            `its key is not a certificate, and ${placeOf(judgement.entry)} trusts only certificates of its authority: ${describeKey(endpoint, key)}`,
            `Set \`transport: openssh\` for ${printable(endpoint.host)}: the built-in transport cannot check host certificates.`,
          )
        case 'unknown':
          return verdictOnNewKey(endpoint, key, signal)
      }
    },
    async preferredAlgorithms(endpoint) {
      return knownAlgorithms(await namingFor(endpoint), endpoint)
    },
  }
}

const refused = (reason: string, hint: string): HostKeyVerdict => ({ ok: false, reason, hint })

/** The commands that add a host's key where nobody can be asked. ssh-keyscan knows neither jump hosts nor aliases. */
export function howToAdd(endpoint: Endpoint, keyType?: string): string {
  const { host, address, port, knownHostsFiles, jump, proxyCommand, hostKeyAlias, hashKnownHosts } = endpoint
  // A host that was named by its address has a name without the port.
  const target = host === address && port !== 22 ? formatHostSpec({ host, port }) : host
  const review = `\`muster hosts ${shellQuote(printable(target))} --check\` in a terminal asks about it`
  const [file] = knownHostsFiles
  if (file === undefined || jump.length > 0 || proxyCommand !== undefined || hostKeyAlias !== undefined)
    return `Compare the fingerprint with the machine's own: ${review}.`
  const type = /^(?:ssh-)?(rsa|ecdsa|ed25519)\b/.exec(keyType ?? '')?.[1]
  const words = [
    'ssh-keyscan',
    ...(hashKnownHosts ? ['-H'] : []),
    ...(type === undefined ? [] : ['-t', type]),
    ...(port === 22 ? [] : ['-p', String(port)]),
    shellQuote(printable(address)),
  ]
  return `Compare the fingerprint with the machine's own, then run \`${words.join(' ')} >> ${shellQuote(printable(file))}\`; or ${review}.`
}

function changed(endpoint: Endpoint, key: Uint8Array, offending: KnownHostsEntry): HostKeyVerdict {
  const old = `${keyTypeTitle(offending.keyType)} ${fingerprintOf(offending.blob)}`
  const shown = `the host key has changed: ${describeKey(endpoint, key)}`
  if (offending.line === 0) {
    return refused(
      `${shown}, but ${old} was accepted earlier in this run; the connection may be intercepted`,
      'If the machine was reinstalled, start Muster again.',
    )
  }
  return refused(
    `${shown}, but ${placeOf(offending)} has ${old}; the connection may be intercepted`,
    `If the machine was reinstalled, remove the old key with: ssh-keygen -f ${shellQuote(printable(offending.file))} -R ${shellQuote(printable(lookupNameOf(endpoint)))}`,
  )
}

function unkeptKey({ knownHostsFiles }: Endpoint, name: string): string {
  return [name, ...knownHostsFiles].join('\n')
}

function describeKey(endpoint: Endpoint, key: Uint8Array): string {
  return `the ${keyTypeTitle(keyTypeOf(key) ?? 'unreadable')} key ${fingerprintOf(key)} of ${printable(lookupNameOf(endpoint))}`
}

function placeOf(entry: KnownHostsEntry): string {
  return `${printable(entry.file)}:${entry.line}`
}

/** A review opens once no further key came for this long … */
const QUIET_MS = 250
/** … and not later than this after the first. */
const PATIENCE_MS = 1500

type Waiting = {
  readonly signal: AbortSignal
  settle(isAccepted: boolean | undefined): void
  fail(error: unknown): void
}

/** Asked once, however many connections wait for the answer: the server may have closed the first one meanwhile. */
type Question = { readonly key: NewHostKey; readonly waiting: Set<Waiting> }

class ReviewQueue {
  readonly #reviewer: HostKeyReviewer
  readonly #clock: Clock
  #questions: Question[] = []
  /** Those that the user looks at. */
  #open: readonly Question[] = []
  #firstAtMs = 0
  #timer: Disposable | undefined

  constructor(reviewer: HostKeyReviewer, clock: Clock) {
    this.#reviewer = reviewer
    this.#clock = clock
  }

  /** Resolves to whether the user accepts this key for this host; an abort counts as no. Undefined: nobody can be asked. */
  ask(endpoint: Endpoint, blob: Uint8Array, signal: AbortSignal): Promise<boolean | undefined> {
    if (signal.aborted) return Promise.resolve(false)
    const question = this.#questionFor({
      host: endpoint.host,
      lookupName: lookupNameOf(endpoint),
      algorithm: keyTypeOf(blob) ?? 'unreadable',
      fingerprint: fingerprintOf(blob),
    })
    return new Promise<boolean | undefined>((resolve, reject) => {
      const onAbort = () => waiting.settle(false)
      const settled = () => {
        signal.removeEventListener('abort', onAbort)
        question.waiting.delete(waiting)
        if (question.waiting.size === 0) this.#questions = this.#questions.filter((other) => other !== question)
      }
      const waiting: Waiting = {
        signal,
        settle: (isAccepted) => {
          settled()
          resolve(isAccepted)
          this.#closeUnasked()
        },
        fail: (error) => {
          settled()
          reject(error)
        },
      }
      signal.addEventListener('abort', onAbort)
      question.waiting.add(waiting)
      this.#schedule()
    })
  }

  #questionFor(key: NewHostKey): Question {
    const isSame = ({ key: other }: Question) =>
      key.host === other.host && key.lookupName === other.lookupName && key.fingerprint === other.fingerprint
    const known = this.#open.find(isSame) ?? this.#questions.find(isSame)
    if (known !== undefined) return known
    const question = { key, waiting: new Set<Waiting>() }
    if (this.#questions.length === 0) this.#firstAtMs = this.#clock.now()
    this.#questions.push(question)
    return question
  }

  #schedule(): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    if (this.#open.length > 0 || this.#questions.length === 0) return
    const patienceMs = Math.max(0, this.#firstAtMs + PATIENCE_MS - this.#clock.now())
    this.#timer = this.#clock.after(Math.min(QUIET_MS, patienceMs), () => void this.#review())
  }

  #closeUnasked = (): void => {}

  async #review(): Promise<void> {
    const batch = this.#questions
    this.#questions = []
    if (batch.length === 0) return
    this.#open = batch
    // The dialog closes when no host waits for its answer any more.
    const abort = new AbortController()
    this.#closeUnasked = () => {
      if (batch.every(({ waiting }) => waiting.size === 0)) abort.abort()
    }
    const all = () => batch.flatMap((question) => [...question.waiting].map((waiting) => ({ ...question, waiting })))
    try {
      const accepted = await this.#reviewer.review(
        batch.map(({ key }) => key),
        abort.signal,
      )
      this.#open = []
      this.#closeUnasked = () => {}
      for (const { key, waiting } of all()) waiting.settle(accepted?.has(key.host))
    } catch (error) {
      for (const { waiting } of all()) waiting.fail(error)
    } finally {
      this.#open = []
      this.#closeUnasked = () => {}
      this.#firstAtMs = this.#clock.now()
      this.#schedule()
    }
  }
}

/** A lock this old belongs to a process that died: recording a key takes milliseconds. */
const STALE_LOCK_MS = 10_000
const LOCK_PATIENCE_MS = 15_000

type Cached = { readonly version: string; readonly hosts: KnownHosts }

/** Cached reads, appends in one write under a lock, again where ssh-keygen -R replaced the file meanwhile. */
export class KnownHostsFiles {
  readonly #cache = new Map<string, Cached>()
  readonly #writers = new Map<string, Promise<void>>()

  /** What these files say, in order; a missing file is an empty one. Throws `configuration` when one cannot be read. */
  async read(files: readonly string[]): Promise<NamingEntries> {
    const all = await Promise.all(files.filter((file) => file !== 'none').map((file) => this.#read(file)))
    return (name) => all.flatMap((hosts) => hosts.naming(name))
  }

  /** Appends a line for the key unless the file has it by now. Throws `configuration` when that is impossible. */
  async add(file: string, name: string, key: Uint8Array, isHashed: boolean): Promise<void> {
    const before = this.#writers.get(file) ?? Promise.resolve()
    const mine = before.catch(() => {}).then(() => this.#append(file, name, key, isHashed))
    this.#writers.set(file, mine)
    try {
      await mine
    } catch (error) {
      throw new MusterError('configuration', `cannot record a host key in ${printable(file)}: ${fileReason(error)}`, {
        hint: `Check the permissions of ${printable(file)} and its directory.`,
        cause: error,
      })
    } finally {
      if (this.#writers.get(file) === mine) this.#writers.delete(file)
    }
  }

  async #read(file: string): Promise<KnownHosts> {
    try {
      const { mtimeMs, size, ino } = await stat(file)
      const version = `${mtimeMs} ${size} ${ino}`
      const cached = this.#cache.get(file)
      if (cached?.version === version) return cached.hosts
      const hosts = new KnownHosts(parseKnownHosts(await readFile(file, 'latin1'), file))
      this.#cache.set(file, { version, hosts })
      return hosts
    } catch (error) {
      if (isMissing(error)) return new KnownHosts([])
      throw new MusterError('configuration', `cannot read ${printable(file)}: ${fileReason(error)}`, {
        hint: `Make ${printable(file)} readable, or name other files with UserKnownHostsFile: no host is trusted without it.`,
        cause: error,
      })
    }
  }

  async #append(file: string, name: string, key: Uint8Array, isHashed: boolean): Promise<void> {
    makeDirectories(dirname(file), 0o700)
    const target = await realpath(file).catch(() => file)
    const isRegular = await stat(target).then(
      (found) => found.isFile(),
      () => true,
    )
    const unlock = isRegular ? await lock(`${target}.muster-lock`) : async () => {}
    try {
      const isSame = (entry: KnownHostsEntry) => entry.marker === 'none' && Buffer.compare(entry.blob, key) === 0
      const isThere = (await this.#read(file)).naming(name).some(isSame)
      if (!isThere) await appendLine(target, formatKnownHostsLine(name, key, isHashed))
    } finally {
      await unlock()
    }
  }
}

async function appendLine(file: string, line: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const handle = await open(file, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT, 0o600)
    try {
      const { size, ino, mode } = await handle.stat()
      if (size === 0 && (mode & 0o777) !== 0o600 && (mode & constants.S_IFMT) === constants.S_IFREG) {
        await chmod(file, 0o600)
      }
      const last = Buffer.alloc(1)
      if (size > 0) await handle.read(last, 0, 1, size - 1)
      const isOpenLine = size > 0 && last[0] !== 0x0a
      await appendWhole(handle, size, Buffer.from(isOpenLine ? `\n${line}` : line))
      if (attempt === 3 || (await stat(file)).ino === ino) return
    } finally {
      await handle.close()
    }
  }
}

/** On a full disk a part of a line may have room: it is removed. */
async function appendWhole(handle: FileHandle, sizeBytes: number, bytes: Buffer): Promise<void> {
  let written = 0
  try {
    while (written < bytes.length) written += (await handle.write(bytes, written)).bytesWritten
  } catch (error) {
    // Not what ssh has added meanwhile.
    if (written > 0 && (await handle.stat()).size === sizeBytes + written) await handle.truncate(sizeBytes)
    throw error
  }
}

/** Waits its turn for the lock file; one that its owner left behind is moved out of the way. Resolves to the unlock. */
async function lock(path: string): Promise<() => Promise<void>> {
  // Also where the clock is set.
  const giveUpAt = performance.now() + LOCK_PATIENCE_MS
  for (;;) {
    try {
      // Empty, as it is still there where nothing can be written into it.
      await (await open(path, 'wx', 0o600)).close()
      return () => rm(path, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const age = await stat(path).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0,
    )
    if (age > STALE_LOCK_MS) {
      const aside = `${path}.${process.pid}`
      await rename(path, aside).catch(() => {})
      await rm(aside, { force: true })
    } else if (performance.now() > giveUpAt) {
      throw new Error(`another Muster holds ${printable(path)}`)
    } else {
      await delay(5 + Math.random() * 20)
    }
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR'
}

type HostKeyJudgement =
  | { readonly kind: 'known' }
  | { readonly kind: 'unknown' }
  /** The name has another key, of whatever type: ssh takes that for a changed key. */
  | { readonly kind: 'changed'; readonly offending: KnownHostsEntry }
  | { readonly kind: 'revoked'; readonly entry: KnownHostsEntry }
  /** Only a certificate authority is known for the name, and the server showed a plain key. */
  | { readonly kind: 'authority-only'; readonly entry: KnownHostsEntry }

/** What the files say about a name: the entries that speak about it, in order. */
type NamingEntries = (name: string) => readonly KnownHostsEntry[]

export function judgeHostKey(naming: NamingEntries, endpoint: Endpoint, key: Uint8Array): HostKeyJudgement {
  const judgement = judgeAmong(naming(lookupNameOf(endpoint)), key)
  const second = secondLookupNameOf(endpoint)
  if (judgement.kind !== 'unknown' || second === undefined) return judgement
  // Without the port, anything but a match says nothing.
  const withoutPort = judgeAmong(naming(second), key)
  return withoutPort.kind === 'known' || withoutPort.kind === 'revoked' ? withoutPort : judgement
}

function judgeAmong(entries: readonly KnownHostsEntry[], key: Uint8Array): HostKeyJudgement {
  const isSame = (entry: KnownHostsEntry) => Buffer.compare(entry.blob, key) === 0
  const revoked = entries.find((entry) => entry.marker === 'revoked' && isSame(entry))
  if (revoked !== undefined) return { kind: 'revoked', entry: revoked }
  const plain = entries.filter((entry) => entry.marker === 'none')
  if (plain.some(isSame)) return { kind: 'known' }
  const offending = plain[0]
  if (offending !== undefined) return { kind: 'changed', offending }
  const authority = entries.find((entry) => entry.marker === 'cert-authority')
  return authority === undefined ? { kind: 'unknown' } : { kind: 'authority-only', entry: authority }
}

/** Host key algorithms (RFC 8332 names included) of the endpoint's known keys that are not revoked, for the server to show. */
export function knownAlgorithms(naming: NamingEntries, endpoint: Endpoint): readonly string[] {
  const entries = naming(lookupNameOf(endpoint))
  const good = entries.filter((entry) => judgeAmong(entries, entry.blob).kind === 'known')
  const types = new Set(good.map((entry) => entry.keyType))
  return [...types].flatMap((type) => (type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : [type]))
}
