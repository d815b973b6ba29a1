/** Host keys against known_hosts: known, changed, revoked, or new and reviewed by the user. It fails closed, and rewrites no line. */
import { type Clock, systemClock } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Endpoint } from '../../inventory/host.ts'
import {
  fingerprintOf,
  formatKnownHostsLine,
  type KnownHostsEntry,
  keyTypeOf,
  keyTypeTitle,
  lookupNameOf,
  parseKnownHosts,
  tooShortRsa,
} from '../../inventory/known-hosts/parse.ts'
import type { HostKeyReviewer, HostKeyVerdict, HostKeyVerifier, NewHostKey } from '../questions.ts'
import { judgeHostKey, KnownHostsFiles, knownAlgorithms, type NamingEntries } from './files.ts'

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
        `${shown} is not in known_hosts, and UserKnownHostsFile none leaves no file to record it in`,
        `Set UserKnownHostsFile to a file for ${printable(endpoint.host)}; ssh accepts no new key without one either.`,
      )
    }
    switch (endpoint.strictHostKeyChecking) {
      case 'yes':
        return refused(
          `${shown} is not in known_hosts, and StrictHostKeyChecking is yes`,
          `Compare the fingerprint with the machine's own, then connect once with ssh -o StrictHostKeyChecking=ask ${printable(endpoint.host)}.`,
        )
      case 'accept-new':
      case 'no':
        await record(endpoint, key)
        return { ok: true }
      case 'ask':
        if (reviews === undefined) {
          return refused(
            `${shown} is not in known_hosts, and there is no user to ask`,
            'Open the console once to review new keys, or set StrictHostKeyChecking accept-new for these hosts.',
          )
        }
        if (!(await reviews.ask(endpoint, key, signal))) {
          return refused(`${shown} was not accepted`, 'Reconnect to review the key again.')
        }
        await record(endpoint, key)
        return { ok: true }
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
            `${describeKey(endpoint, key)} is marked as revoked in ${placeOf(judgement.entry)}: it may have been stolen`,
            'Ask who runs the machine for its new key.',
          )
        case 'authority-only':
          return refused(
            `${describeKey(endpoint, key)} is not a certificate, and ${placeOf(judgement.entry)} trusts only certificates of its authority`,
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
  readonly key: NewHostKey
  readonly signal: AbortSignal
  settle(isAccepted: boolean): void
  fail(error: unknown): void
}

class ReviewQueue {
  readonly #reviewer: HostKeyReviewer
  readonly #clock: Clock
  #waiting: Waiting[] = []
  #firstAtMs = 0
  #timer: Disposable | undefined
  #isReviewing = false

  constructor(reviewer: HostKeyReviewer, clock: Clock) {
    this.#reviewer = reviewer
    this.#clock = clock
  }

  /** Resolves to whether the user accepts this key for this host; an abort counts as no. */
  ask(endpoint: Endpoint, blob: Uint8Array, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    const key: NewHostKey = {
      host: endpoint.host,
      lookupName: lookupNameOf(endpoint),
      algorithm: keyTypeOf(blob) ?? 'unreadable',
      fingerprint: fingerprintOf(blob),
    }
    return new Promise<boolean>((resolve, reject) => {
      const onAbort = () => waiting.settle(false)
      const settled = () => signal.removeEventListener('abort', onAbort)
      const waiting: Waiting = {
        key,
        signal,
        settle: (isAccepted) => {
          settled()
          this.#waiting = this.#waiting.filter((other) => other !== waiting)
          resolve(isAccepted)
        },
        fail: (error) => {
          settled()
          reject(error)
        },
      }
      signal.addEventListener('abort', onAbort)
      if (this.#waiting.length === 0) this.#firstAtMs = this.#clock.now()
      this.#waiting.push(waiting)
      this.#schedule()
    })
  }

  #schedule(): void {
    this.#timer?.[Symbol.dispose]()
    this.#timer = undefined
    if (this.#isReviewing || this.#waiting.length === 0) return
    const patienceMs = Math.max(0, this.#firstAtMs + PATIENCE_MS - this.#clock.now())
    this.#timer = this.#clock.after(Math.min(QUIET_MS, patienceMs), () => void this.#review())
  }

  async #review(): Promise<void> {
    const batch = this.#waiting
    this.#waiting = []
    if (batch.length === 0) return
    this.#isReviewing = true
    // The dialog closes when no host waits for its answer any more.
    const abort = new AbortController()
    const onAbort = () => {
      if (batch.every(({ signal }) => signal.aborted)) abort.abort()
    }
    for (const { signal } of batch) signal.addEventListener('abort', onAbort)
    try {
      const accepted = await this.#reviewer.review(
        batch.map(({ key }) => key),
        abort.signal,
      )
      for (const waiting of batch) waiting.settle(accepted.has(waiting.key.host))
    } catch (error) {
      for (const waiting of batch) waiting.fail(error)
    } finally {
      for (const { signal } of batch) signal.removeEventListener('abort', onAbort)
      this.#isReviewing = false
      this.#firstAtMs = this.#clock.now()
      this.#schedule()
    }
  }
}
