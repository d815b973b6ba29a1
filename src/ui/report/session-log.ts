/** What was typed since the console started, into which hosts, and their output: bounded, in memory, and taken from echoes, never from keys. */
import { asksSecret, TypedLines } from './typed-line.ts'

/** Of what a host printed after one line, its beginning and its end. */
const END_BYTES = 16 * 1024
const MOST_BYTES = 24 * 2 ** 20
/** What a part takes besides its output, about. */
const PART_BYTES = 768
/** Output in smaller pieces is joined. */
const PIECE_BYTES = 1024
const MOST_ENTRIES = 2000
const MOST_SECRETS = 500

/** How a host's terminal was at the first key of a line. */
export type PaneFacts = {
  readonly columns: number
  /** Left of the cursor. */
  readonly before: string
  readonly isFullScreen: boolean
}

/** What one host did with one entry. */
export class HostPart {
  readonly typed: TypedLines
  readonly before: string
  readonly columns: number
  /** The prompt after it, as far as it is known. */
  after: string | undefined
  #head: Uint8Array[] = []
  #tail: Uint8Array[] = []
  #headBytes = 0
  #tailBytes = 0
  #bytes = 0

  constructor(before: string, columns: number) {
    this.before = before
    this.columns = columns
    this.typed = new TypedLines(before, columns)
  }

  /** In memory. */
  get size(): number {
    return PART_BYTES + this.before.length + this.#headBytes + this.#tailBytes
  }

  get droppedBytes(): number {
    return this.#bytes - this.#headBytes - this.#tailBytes
  }

  get head(): Buffer {
    return Buffer.concat(this.#head)
  }

  get tail(): Buffer {
    return Buffer.concat(this.#tail)
  }

  push(bytes: Uint8Array): void {
    this.typed.print(bytes)
    this.#bytes += bytes.length
    const forHead = bytes.subarray(0, END_BYTES - this.#headBytes)
    if (forHead.length > 0) {
      append(this.#head, forHead)
      this.#headBytes += forHead.length
    }
    const rest = bytes.subarray(forHead.length).subarray(-END_BYTES)
    if (rest.length === 0) return
    append(this.#tail, rest)
    this.#tailBytes += rest.length
    for (let [first] = this.#tail; first && this.#tailBytes - first.length >= END_BYTES; [first] = this.#tail) {
      this.#tail.shift()
      this.#tailBytes -= first.length
    }
  }
}

/** A copy: a small piece must not keep a large buffer alive. */
function append(pieces: Uint8Array[], bytes: Uint8Array): void {
  const last = pieces.at(-1)
  if (last === undefined || last.length + bytes.length > PIECE_BYTES) return void pieces.push(Uint8Array.from(bytes))
  const joined = new Uint8Array(last.length + bytes.length)
  joined.set(last)
  joined.set(bytes, last.length)
  pieces[pieces.length - 1] = joined
}

export type TypedEntry = {
  readonly kind: 'typed'
  readonly atMs: number
  readonly parts: ReadonlyMap<string, HostPart>
}

/** A command that was run beside the shells; groups of hosts with equal output, failures first. */
export type RunEntry = {
  readonly kind: 'run'
  readonly atMs: number
  readonly command: string
  readonly groups: readonly {
    readonly hosts: readonly string[]
    readonly outcome: string
    readonly lines: readonly string[]
  }[]
}

export type SessionEntry = TypedEntry | RunEntry

export class SessionLog {
  readonly #paneOf: (host: string) => PaneFacts | undefined
  #entries: SessionEntry[] = []
  #droppedEntries = 0
  /** The entry whose line is still being typed, and all hosts that get it. */
  #open: TypedEntry | undefined
  #openHosts: ReadonlySet<string> = new Set()
  readonly #current = new Map<string, HostPart>()
  /** What is typed where a full-screen program, such as tmux, shows a question for a password. */
  readonly #asked = new Map<string, TypedLines>()
  readonly #secrets: string[] = []
  #bytes = 0

  constructor(paneOf: (host: string) => PaneFacts | undefined) {
    this.#paneOf = paneOf
  }

  get entries(): readonly SessionEntry[] {
    return this.#entries
  }

  /** Typed where it was not echoed: to be removed from everything. */
  secrets(): ReadonlySet<string> {
    const lines = this.#entries.flatMap((entry) =>
      entry.kind === 'typed' ? [...entry.parts.values()].flatMap((part) => part.typed.lines) : [],
    )
    const asked = [...this.#asked.values()].flatMap((typed) => typed.lines)
    const hidden = [...lines, ...asked].filter(({ state }) => state === 'hidden').map(({ text }) => text)
    return new Set([...this.#secrets, ...hidden].filter((text) => text !== ''))
  }

  /** Left out because there were too many. */
  get droppedEntries(): number {
    return this.#droppedEntries
  }

  /** Bytes that were sent to hosts together; full-screen programs get keys, not lines. */
  noteTyped(
    batches: readonly { readonly hosts: readonly string[]; readonly bytes: Uint8Array }[],
    nowMs: number,
  ): void {
    const open = this.#open
    const typed = batches.flatMap(({ hosts, bytes }) => hosts.map((host) => ({ host, bytes })))
    if (open !== undefined && typed.every(({ host }) => this.#openHosts.has(host)))
      return this.#type(open, typed, nowMs)
    // Enter, Ctrl-C and the like by themselves belong to what is running.
    if (!typed.some(({ bytes }) => isText(bytes))) return this.#ask(typed, nowMs)
    const parts = new Map<string, HostPart>()
    for (const { host } of typed) {
      const pane = this.#paneOf(host)
      if (pane === undefined) continue
      if (pane.isFullScreen) {
        if (!this.#asked.has(host) && asksSecret(pane.before))
          this.#asked.set(host, new TypedLines(pane.before, pane.columns))
        continue
      }
      const part = new HostPart(pane.before, pane.columns)
      const last = this.#current.get(host)
      if (last !== undefined) {
        last.after ??= pane.before
        last.typed.finish()
      }
      this.#current.set(host, part)
      this.#bytes += part.size
      parts.set(host, part)
    }
    if (parts.size === 0) return this.#ask(typed, nowMs)
    const entry = { kind: 'typed', atMs: nowMs, parts } as const
    this.#add(entry)
    this.#open = entry
    this.#openHosts = new Set(typed.map(({ host }) => host))
    this.#type(entry, typed, nowMs)
  }

  noteOutput(host: string, bytes: Uint8Array): void {
    const part = this.#current.get(host)
    if (part === undefined) return
    const before = part.size
    part.push(bytes)
    this.#bytes += part.size - before
    if (this.#bytes > MOST_BYTES) this.#drop()
  }

  /** A new shell: its output belongs to nothing that was typed before. */
  noteShell(host: string): void {
    this.#current.get(host)?.typed.finish()
    this.#current.delete(host)
    if (this.#open?.parts.has(host)) this.#open = undefined
  }

  noteRun(entry: Omit<RunEntry, 'kind'>): void {
    this.#add({ kind: 'run', ...entry })
  }

  #type(entry: TypedEntry, typed: readonly { host: string; bytes: Uint8Array }[], nowMs: number): void {
    for (const { host, bytes } of typed) entry.parts.get(host)?.typed.type(bytes, nowMs)
    this.#ask(typed, nowMs)
    if (![...entry.parts.values()].some((part) => part.typed.isEntered)) return
    this.#open = undefined
    // It ran now, whenever its first key was typed.
    const at = this.#entries.lastIndexOf(entry)
    if (at < 0) return
    this.#entries.splice(at, 1)
    this.#entries.push({ ...entry, atMs: nowMs })
  }

  #ask(typed: readonly { host: string; bytes: Uint8Array }[], nowMs: number): void {
    if (this.#asked.size === 0) return
    for (const { host, bytes } of typed) {
      const asked = this.#asked.get(host)
      asked?.type(bytes, nowMs)
      if (asked?.isEntered) {
        this.#asked.delete(host)
        this.#keepSecrets(asked)
      }
    }
  }

  #keepSecrets({ lines }: TypedLines): void {
    for (const { text, state } of lines)
      if (state === 'hidden' && !this.#secrets.includes(text)) this.#secrets.push(text)
    this.#secrets.splice(0, this.#secrets.length - MOST_SECRETS)
  }

  #add(entry: SessionEntry): void {
    this.#entries.push(entry)
    if (this.#entries.length > MOST_ENTRIES || this.#bytes > MOST_BYTES) this.#drop()
  }

  /** The oldest. */
  #drop(): void {
    const dropped = this.#entries.splice(0, Math.max(1, Math.floor(this.#entries.length / 10)))
    this.#droppedEntries += dropped.length
    for (const entry of dropped) {
      if (entry.kind !== 'typed') continue
      if (entry === this.#open) this.#open = undefined
      for (const [host, part] of entry.parts) {
        this.#bytes -= part.size
        this.#keepSecrets(part.typed)
        if (this.#current.get(host) === part) this.#current.delete(host)
      }
    }
  }
}

/** Part of a line; arrows are, too, since they recall lines. */
const isText = (bytes: Uint8Array): boolean => bytes.some((byte) => byte >= 0x20 && byte !== 0x7f)
