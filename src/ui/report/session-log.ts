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

/** Lines that a host has not asked for yet; more are not told apart. */
const MOST_AHEAD = 20
/** How a line editor marks that it begins to ask: what follows is the next prompt. */
export const EDITOR_STARTS = '\x1b[?2004h'

/** How a host's terminal was at the first key of a line. */
export type PaneFacts = {
  readonly columns: number
  /** Left of the cursor. */
  readonly before: string
  /** A line editor marks its prompts. */
  readonly isEditing: boolean
  readonly isFullScreen: boolean
}

/** What one host did with one entry. */
export class HostPart {
  readonly typed: TypedLines
  readonly before: string
  readonly columns: number
  /** The prompt after it, as far as it is known. */
  after: string | undefined
  /** The lines that were typed before the host asked for them: their echo is in this output. */
  readonly ahead: TypedLines[] = []
  /** Typed before the host asked for it: its output begins with the prompt. */
  isAhead = false
  /** Its output cannot be told from that of another line. */
  isMixed = false
  /** Prompts that its shell has marked since its first key; undefined: the shell marks none. */
  prompts: number | undefined
  #head: Uint8Array[] = []
  #tail: Uint8Array[] = []
  #headBytes = 0
  #tailBytes = 0
  #bytes = 0

  constructor(before: string, columns: number, isMarked = false) {
    this.before = before
    this.columns = columns
    if (isMarked) this.prompts = 0
    this.typed = new TypedLines(before, columns)
  }

  /** The host has asked for the next line. */
  get hasEnded(): boolean {
    return this.prompts !== undefined && this.typed.isEntered && this.prompts >= this.typed.enters
  }

  /** Whether what is typed at `pane` is typed before this line has ended. */
  isBehind({ isEditing, before }: PaneFacts): boolean {
    const { prompts, typed } = this
    if (!typed.isEntered || this.hasEnded) return false
    if (prompts === undefined) return before === '' || this.#bytes === 0
    // Text left of the cursor is a question, or a prompt, and the echo of this line is on its way.
    if (!isEditing) return before === ''
    return prompts === 0 && (this.isAhead ? !typed.isEchoed : before.startsWith(this.before))
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
  /** The line that the host works on, and those that were typed ahead. */
  readonly #current = new Map<string, readonly [HostPart, ...HostPart[]]>()
  /** Hosts whose shell marks its prompts, and the end of their output, which may be half a mark. */
  readonly #marked = new Map<string, Uint8Array>()
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
    const typed = batches.flatMap(({ hosts, bytes }) => hosts.map((host) => ({ host, bytes })))
    if (this.#open !== undefined && isInterrupt(this.#open, typed)) this.#cancel(this.#open)
    const open = this.#open
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
      const part = this.#nextPart(host, pane)
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
    let parts = this.#current.get(host)
    if (parts === undefined) return
    for (const { typed } of parts) typed.print(bytes)
    let from = 0
    for (const to of this.#marksIn(host, bytes)) {
      const [first, ...ahead] = parts
      this.#push(first, bytes.subarray(from, to))
      from = to
      if (!first.typed.isEntered || first.prompts === undefined) continue
      first.prompts += 1
      if (!first.hasEnded || !isFilled(ahead)) continue
      first.typed.finish()
      parts = ahead
      this.#current.set(host, parts)
    }
    this.#push(parts[0], bytes.subarray(from))
    if (this.#bytes > MOST_BYTES) this.#drop()
  }

  /** A new shell: its output belongs to nothing that was typed before. */
  noteShell(host: string): void {
    for (const { typed } of this.#current.get(host) ?? []) typed.finish()
    this.#current.delete(host)
    this.#marked.delete(host)
    if (this.#open?.parts.has(host)) this.#open = undefined
  }

  noteRun(entry: Omit<RunEntry, 'kind'>): void {
    this.#add({ kind: 'run', ...entry })
  }

  /** For a line that is typed now. What is typed ahead gets what the host prints from its prompt on, if that is marked. */
  #nextPart(host: string, pane: PaneFacts): HostPart {
    if (pane.isEditing && !this.#marked.has(host)) this.#marked.set(host, new Uint8Array())
    const isMarked = this.#marked.has(host)
    const parts = this.#current.get(host)
    const isAhead = parts?.[0].isBehind(pane) ?? false
    const part = new HostPart(isAhead ? '' : pane.before, pane.columns, isMarked)
    if (parts !== undefined && isAhead && isMarked && parts.length < MOST_AHEAD) {
      part.isAhead = true
      parts[0].ahead.push(part.typed)
      this.#current.set(host, [...parts, part])
      return part
    }
    const last = parts?.at(-1)
    // Lines that were typed ahead, and whose prompts did not come.
    part.isMixed = isAhead || (last?.isAhead === true && !last.hasEnded)
    for (const each of parts ?? []) {
      each.typed.finish()
      if (part.isMixed) each.isMixed = true
    }
    if (last !== undefined && !part.isMixed) last.after ??= pane.before
    this.#current.set(host, [part])
    return part
  }

  /** Where each mark of a prompt ends. */
  #marksIn(host: string, bytes: Uint8Array): readonly number[] {
    const end = this.#marked.get(host)
    if (end === undefined) return []
    const most = EDITOR_STARTS.length - 1
    const marks: number[] = []
    // Large output is not copied.
    const seam = Buffer.concat([end, bytes.subarray(0, most)])
    const across = seam.indexOf(EDITOR_STARTS)
    if (across >= 0) marks.push(across + EDITOR_STARTS.length - end.length)
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    for (let at = text.indexOf(EDITOR_STARTS); at >= 0; at = text.indexOf(EDITOR_STARTS, at + 1))
      marks.push(at + EDITOR_STARTS.length)
    this.#marked.set(host, Uint8Array.from(bytes.length < most ? seam.subarray(-most) : bytes.subarray(-most)))
    return marks
  }

  #push(part: HostPart, bytes: Uint8Array): void {
    if (part.hasEnded) return
    const before = part.size
    part.push(bytes)
    this.#bytes += part.size - before
  }

  /** Nothing of it ran. */
  #cancel(entry: TypedEntry): void {
    this.#entries = this.#entries.filter((each) => each !== entry)
    this.#forget(entry)
  }

  #forget(entry: TypedEntry): void {
    if (entry === this.#open) this.#open = undefined
    for (const [host, part] of entry.parts) {
      this.#bytes -= part.size
      this.#keepSecrets(part.typed)
      const others = this.#current.get(host)?.filter((each) => each !== part) ?? []
      if (isFilled(others)) this.#current.set(host, others)
      else this.#current.delete(host)
    }
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
    for (const entry of dropped) if (entry.kind === 'typed') this.#forget(entry)
  }
}

const isFilled = <T>(items: readonly T[]): items is readonly [T, ...T[]] => items.length > 0

/** Ctrl-C on each host of a line. */
const isInterrupt = (
  { parts }: TypedEntry,
  typed: readonly { readonly host: string; readonly bytes: Uint8Array }[],
): boolean => {
  const hosts = new Set(typed.map(({ host }) => host))
  return (
    typed.every(({ bytes }) => bytes.length === 1 && bytes[0] === 3) &&
    [...parts.keys()].every((host) => hosts.has(host))
  )
}

/** Part of a line; arrows are, too, since they recall lines. */
const isText = (bytes: Uint8Array): boolean => bytes.some((byte) => byte >= 0x20 && byte !== 0x7f)
