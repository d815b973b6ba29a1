/** What was typed since the console started, into which hosts, and their output: bounded, in memory, and taken from echoes, never from keys. */

import { asksSecret, asksSomething, HAS_SIGN, IS_PROMPT, PROMPT_STATUS, SHORTEST_SECRET } from './asks-secret.ts'
import { EchoDelays } from './echo-delays.ts'
import type { Look } from './echo-screen.ts'
import { readingsOf } from './entered-text.ts'
import { endsInFullScreen, SWITCH_BYTES } from './full-screen.ts'
import { EDITOR_STOPS, LINE_END, PASTED, TypedLines } from './typed-line.ts'

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
/** What may be the prompt and the echo of a line that was typed ahead. */
const MOST_HELD_BYTES = 4 * 1024
/** Prompts have no more rows. */
export const MOST_PROMPT_ROWS = 6
/** How a line editor says that it begins to read a line. Any program may print this, and that it has read one. */
export const EDITOR_STARTS = '\x1b[?2004h'

/** How a host's terminal was at the first key of a line. */
export type PaneFacts = {
  readonly columns: number
  /** Left of the cursor. */
  readonly before: string
  /** A line editor marks its prompts. */
  readonly isEditing: boolean
  readonly isFullScreen: boolean
  /** Whether this text is anywhere on its screen. */
  readonly shows?: (text: string) => boolean
  /** Without it, all text is seen. */
  readonly look?: Look
}

/** How a shell ended: with its connection, closed by the user, or by itself. */
export type ShellEnded = 'lost' | 'closed' | 'ended'

/** `now`: left of the cursor. What ends as prompts do is one, and so is what was there when the line was typed. */
export function isAtPrompt(now: string, before: string): boolean {
  const text = now.trimEnd()
  return text !== '' && (IS_PROMPT.test(text) || text === before.trimEnd())
}

/** What one host did with one entry. */
export class HostPart {
  readonly typed: TypedLines
  readonly before: string
  readonly columns: number
  /** The prompt after it, as far as it is known. */
  after: string | undefined
  /** The lines that were typed before the host asked for them: their echo may be in this output. */
  readonly ahead: TypedLines[] = []
  /** The lines of other hosts whose keys its full-screen program got: a shell after that may have got some of them. */
  readonly besides: TypedLines[] = []
  /** Typed before the host asked for it: what belongs to it begins with the prompt. */
  isAhead = false
  /** It, or what was typed ahead of it, is not yet known to be a line of its own. */
  isPending = false
  /** Its output may be that of another line. */
  isDoubtful = false
  /** Its shell ended while it ran; `ended`: by itself, as after `exit`. */
  cut: ShellEnded | undefined
  /** How its shell ended by itself, if not well. */
  failure: string | undefined
  /** Line feeds in a prompt of this host. */
  promptRows: number
  /** The host has printed a line feed since Enter. */
  hasBegun = false
  /** The host has printed something since Enter. */
  hasAnswered = false
  /** A line editor has read it since Enter. */
  hasStopped = false
  /** Since Enter, the host has printed that a line editor reads. Any program may print this. */
  hasEditor = false
  /** The host has printed a line feed since the first key. */
  hasRows = false
  /** Lines that were typed and cancelled after it, which its output may show. */
  readonly cancelled: string[] = []
  /** Of the echo of its paste, only the first line is kept. */
  isEchoDropped = false
  #head: Uint8Array[] = []
  #tail: Uint8Array[] = []
  heldLook: Look | undefined
  /** Left of what is held. */
  heldBefore = ''
  /** From what may be the prompt of the next line on, or from the last key at the prompt after it on. */
  #held: Uint8Array[] | undefined
  #isOver = false
  #headBytes = 0
  #tailBytes = 0
  /** The last ones of those that are not kept. */
  #lastDropped: Buffer = Buffer.alloc(0)
  /** A program had left the terminal in a mode in which it is not known what is shown. */
  readonly isInOddMode: boolean
  #tailIsInFullScreen: boolean | undefined
  #heldBytes = 0
  #bytes = 0

  constructor(
    { before, columns, isEditing, look }: Omit<PaneFacts, 'isFullScreen'>,
    promptRows = 0,
    earlier: string | undefined = undefined,
    shellPrompt: string | undefined = undefined,
  ) {
    this.before = before
    this.columns = columns
    this.promptRows = promptRows
    this.isInOddMode = look?.isOrdinary === false
    this.typed = new TypedLines(before, columns, isEditing, look, earlier, shellPrompt)
  }

  /** Its output cannot be told from that of another line. */
  get isMixed(): boolean {
    return this.isPending || this.isDoubtful
  }

  /** In memory. */
  get size(): number {
    return PART_BYTES + this.before.length + this.#headBytes + this.#tailBytes + this.#heldBytes
  }

  /** The host has printed nothing for it. */
  get isSilent(): boolean {
    return this.#bytes + this.#heldBytes === 0
  }

  /** A full-screen program drew the first bytes of the tail; undefined: what was dropped before them does not tell. */
  get tailIsInFullScreen(): boolean | undefined {
    return this.#tailIsInFullScreen
  }

  get droppedBytes(): number {
    return this.#bytes - this.#headBytes - this.#tailBytes
  }

  get head(): Buffer {
    return Buffer.concat(this.#head)
  }

  get tail(): Buffer {
    return Buffer.concat([...this.#tail, ...(this.#held ?? [])])
  }

  push(bytes: Uint8Array): void {
    if (bytes.length > 0 && this.typed.isEntered) this.hasAnswered = true
    if (bytes.includes(LINE_FEED)) {
      this.hasRows = true
      if (this.typed.isEntered) this.hasBegun = true
    }
    if (this.#held === undefined) return this.#keep(bytes)
    append(this.#held, bytes)
    this.#heldBytes += bytes.length
    if (this.#heldBytes > MOST_HELD_BYTES) this.#keep(this.takeHeld())
  }

  /** What follows may belong to a line that was typed ahead; `look`: how the terminal draws it. */
  hold(look: Look | undefined): void {
    this.#keep(this.takeHeld())
    this.#held = []
    this.heldLook = look
    const [end] = (this.#tail.length > 0 ? this.tail : this.head)
      .subarray(-END_OF_OUTPUT_BYTES)
      .toString()
      .split('\n')
      .slice(-1)
    this.heldBefore = (end ?? '').replace(CONTROLS, '')
  }

  get held(): Uint8Array {
    return Buffer.concat(this.#held ?? [])
  }

  takeHeld(): Uint8Array {
    const { held } = this
    this.#held = undefined
    this.#heldBytes = 0
    return held
  }

  /** What was printed until now is the echo of its paste. */
  dropEcho(): void {
    this.isEchoDropped = true
    // Some line editors leave the line feed to the shell.
    const end = ENDS_ROW.test(Buffer.concat([this.head, ...this.#tail]).toString('latin1')) ? '\r\n' : ''
    this.#head = []
    this.#tail = []
    this.#headBytes = 0
    this.#tailBytes = 0
    this.#bytes = 0
    this.#keep(Buffer.from(`${this.typed.lines[0]?.text}${end}`))
  }

  /** The host is back at its prompt, and gets a key there that begins no line: it may draw that prompt again, which is no output. */
  atPrompt(): void {
    this.settle()
    this.#isOver = true
    this.#held ??= []
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Before the next key at the prompt, or a report. */
  settle(): void {
    if (!this.#isOver || this.#held === undefined) return
    const held = this.takeHeld()
    if (!isPromptAgain(held, this.#tail.length > 0 ? this.tail : this.head)) this.#keep(held)
    this.#held = []
  }

  /** The output of a line that was cancelled, and follows this one. */
  take(part: HostPart): void {
    this.push(part.head)
    this.#bytes += part.droppedBytes
    this.push(part.tail)
  }

  #keep(bytes: Uint8Array): void {
    this.#bytes += bytes.length
    const forHead = bytes.subarray(0, END_BYTES - this.#headBytes)
    if (forHead.length > 0) {
      append(this.#head, forHead)
      this.#headBytes += forHead.length
    }
    const rest = bytes.subarray(forHead.length)
    const kept = rest.subarray(-END_BYTES)
    if (kept.length === 0) return
    const drop = (piece: Uint8Array): void => {
      const dropped = Buffer.concat([this.#lastDropped, piece])
      this.#tailIsInFullScreen = endsInFullScreen(dropped) ?? this.#tailIsInFullScreen
      this.#lastDropped = Buffer.from(dropped.subarray(-SWITCH_BYTES))
    }
    if (kept.length < rest.length) {
      for (const piece of this.#tail.splice(0)) drop(piece)
      drop(rest.subarray(0, -END_BYTES))
      this.#tailBytes = 0
    }
    append(this.#tail, kept)
    this.#tailBytes += kept.length
    for (let [first] = this.#tail; first && this.#tailBytes - first.length >= END_BYTES; [first] = this.#tail) {
      this.#tail.shift()
      this.#tailBytes -= first.length
      drop(first)
    }
  }
}

const LINE_FEED = 10
/** Colours, titles and the like. */
export const CONTROLS = /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x1b(?:\([A-Z]|[=>])|[\x00-\x1f]/g
/** Nothing that can be seen follows. */
const ENDS_ROW = /\n(?:\r|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\([A-Z])*$/

/** Whether `bytes` show nothing but rows that end `output`, which ends with a prompt. */
function isPromptAgain(bytes: Uint8Array, output: Buffer): boolean {
  const rows = textsIn(output.subarray(-END_OF_OUTPUT_BYTES)).slice(-1 - MOST_PROMPT_ROWS)
  const known = new Set(rows.flat())
  return textsIn(Buffer.from(bytes)).every((row) => row.every((text) => known.has(text) || ENDS_LINE.test(text)))
}

/** Of each row that shows any, the texts that were drawn over each other. */
const textsIn = (bytes: Buffer): readonly (readonly string[])[] =>
  bytes
    .toString()
    .split('\n')
    .map((row) => row.split('\r').flatMap((text) => withoutStatus(text.replace(CONTROLS, '').trim()) || []))
    .filter((row) => row.length > 0)

const withoutStatus = (text: string): string => text.replace(PROMPT_STATUS, '').trim() || text

const END_OF_OUTPUT_BYTES = 2 * 1024
/** What Ctrl-C shows, and how fish and zsh end a row of output without a line feed. */
const ENDS_LINE = /^(?:\^C|[⏎%#])$/

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
  /** Hosts whose full-screen programs got these keys. */
  readonly inFullScreen: readonly string[]
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

/** The line that the host works on, and those that were typed ahead. */
type Chain = readonly [HostPart, ...HostPart[]]

/** A line that is still being typed. */
type OpenLine = {
  readonly part: HostPart
  readonly entry: TypedEntry & { readonly parts: Map<string, HostPart> }
  readonly chainBefore: Chain | undefined
  /** A line editor read its first key. */
  readonly isEdited: boolean
}

/** What is known of a host's line editor. */
type Editor = {
  /** Of the host's output: it may be half a mark. */
  end: Uint8Array
  /** Line feeds since it began; undefined: it does not read a line. */
  rows: number | undefined
  /** Where the line that it reads was typed: after so many. */
  rowsBefore: number | undefined
  /** In the lowest prompt at which it has read a line, of those that end as `prompt` does. */
  promptRows: number | undefined
  /** At which it has read the last line. */
  prompt: string | undefined
  /** The line before the first one at another prompt: its output ends with that prompt. */
  lineBefore: HostPart | undefined
  /** The text at which it has read the last line that was echoed: a prompt, however it ends. */
  known: string | undefined
}

/** Keys without Enter that a program has read, unless they turn out to be the beginning of the line after them. */
type EndedKeys = {
  readonly text: string
  readonly secrets: readonly string[]
  /** The line after them. */
  next: HostPart | undefined
}

type Typed = { readonly host: string; readonly bytes: Uint8Array }

export class SessionLog {
  readonly #paneOf: (host: string) => PaneFacts | undefined
  #entries: SessionEntry[] = []
  #droppedEntries = 0
  /** By host: hosts may get different keys, and Enter at different times. */
  readonly #open = new Map<string, OpenLine>()
  /** By host, the last line, where Enter was typed right after Esc. */
  readonly #escaped = new Map<string, OpenLine>()
  readonly #current = new Map<string, Chain>()
  readonly #editors = new Map<string, Editor>()
  /** What was pasted into full-screen programs such as editors, and is not drawn yet. */
  readonly #pasted = new Map<string, Pasted>()
  /** By host, lines of pastes that such a program has drawn: they are text, and no secrets, also those that scrolled by. */
  readonly #drawn = new Map<string, readonly string[]>()
  /** What is typed where a full-screen program, such as tmux, shows a question for a password. */
  readonly #asked = new Map<string, TypedLines>()
  /** By host, what full-screen programs got and have not shown yet. */
  readonly #unseen = new Map<string, readonly Unseen[]>()
  /** Of these, the one that no other key has followed. */
  readonly #lastUnseen = new Map<string, Unseen>()
  /** By host, the last ones. */
  readonly #ended = new Map<string, EndedKeys>()
  readonly #delays = new EchoDelays()
  readonly #secrets: string[] = []
  #bytes = 0

  constructor(paneOf: (host: string) => PaneFacts | undefined) {
    this.#paneOf = paneOf
  }

  get entries(): readonly SessionEntry[] {
    return this.#entries
  }

  /** Typed where it was not echoed, besides what is in `entries`: to be removed from everything. */
  otherSecrets(): ReadonlySet<string> {
    // What a full-screen program got without Enter, such as commands of an editor, answers nothing.
    const asked = [...this.#asked.values()].flatMap((typed) => (typed.asksSecret ? typed.hidden : []))
    const ended = [...this.#ended.values()].flatMap((keys) => keys.secrets)
    for (const host of this.#pasted.keys()) this.#findPasted(host)
    const pasted = [...this.#pasted.values()].flatMap(({ lines }) => lines)
    for (const host of this.#unseen.keys()) this.#findUnseen(host, undefined)
    const unseen = [...this.#unseen.values()].flat().flatMap(({ text, readings }) => [text, ...readings])
    return new Set([...this.#secrets, ...asked, ...ended, ...pasted, ...unseen].filter((text) => text !== ''))
  }

  /** Hides an answer to a question of a server, because any host may print it. */
  noteSecret(text: string): void {
    if (text !== '') this.#keepSecret(text)
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
    const parts = new Map<string, HostPart>()
    const entry = { kind: 'typed', atMs: nowMs, parts, inFullScreen: [] } as const
    for (const { host, bytes } of typed) {
      this.#findPasted(host)
      if (bytes.includes(0x0d)) this.#giveUpPasted(host)
      if (isInterrupt(bytes)) this.#cancel(host)
      else this.#endKeys(host)
      if (this.#open.has(host)) continue
      const pane = this.#paneOf(host)
      if (pane === undefined) continue
      // Enter, Ctrl-C and the like by themselves belong to what is running.
      if (!isText(bytes)) {
        this.#stayAtPrompt(host, pane)
        continue
      }
      if (pane.isFullScreen) {
        this.#lastUnseen.delete(host)
        // In tmux, say, a shell may run a program that reads without echo, whatever its question is.
        const asks = asksSecret(pane.before, pane.look?.seen ?? '')
        const asked = this.#asked.get(host)
        // The words may be those of a command that is being typed.
        const own = asked?.lines[0]?.text ?? ''
        const isOwn = own !== '' && endsWithSome(pane.before.trimEnd(), own)
        if (asked === undefined || (asks && !asked.asksSecret && !isOwn))
          this.#asked.set(host, new TypedLines(pane.before, pane.columns, false, pane.look))
        if (!asks) this.#awaitPaste(host, pane, bytes)
        continue
      }
      if (this.#asked.get(host)?.asksSecret === false) this.#asked.delete(host)
      this.#forgetEscaped(host, pane)
      const chainBefore = this.#current.get(host)
      const part = this.#nextPart(host, pane)
      part.typed.patienceMs = this.#delays.patienceOf(host)
      this.#bytes += part.size
      parts.set(host, part)
      this.#open.set(host, { part, entry, chainBefore, isEdited: pane.isEditing })
    }
    if (parts.size > 0) this.#add(entry)
    for (const { host, bytes } of typed) {
      const open = this.#open.get(host)
      if (open === undefined) continue
      if (isCharacter(bytes)) this.#delays.noteKey(host, nowMs)
      open.part.typed.type(bytes, nowMs)
    }
    this.#ask(typed, nowMs)
    this.#enter(typed, nowMs)
  }

  noteOutput(host: string, bytes: Uint8Array, nowMs: number): void {
    let from = 0
    for (const { to, isStart } of this.#marksIn(host, bytes)) {
      this.#print(host, bytes.subarray(from, to), nowMs)
      from = to
      if (isStart) this.#startEditor(host)
      else this.#stopEditor(host)
    }
    this.#print(host, bytes.subarray(from), nowMs)
    const open = this.#open.get(host)
    this.#delays.noteOutput(host, nowMs, open !== undefined && (open.isEdited || open.part.typed.isOnItsWay))
    this.#findPasted(host)
    this.#findUnseen(host, nowMs)
    if (this.#bytes > MOST_BYTES) this.#drop()
  }

  /** A new shell: its output belongs to nothing that was typed before. */
  noteShell(host: string): void {
    this.#delays.noteShell(host)
    this.#giveUpPasted(host)
    for (const { typed } of this.#current.get(host) ?? []) typed.finish()
    this.#current.delete(host)
    this.#escaped.delete(host)
    this.#editors.delete(host)
    const open = this.#open.get(host)
    this.#open.delete(host)
    if (open === undefined || open.part.hasRows) return
    this.#keepSecrets(open.part.typed)
    this.#remove(host, open)
  }

  /** The host's terminal has another size. */
  noteResize(host: string, { columns, rows }: { readonly columns: number; readonly rows: number }): void {
    const chain = this.#current.get(host) ?? []
    for (const { typed } of chain) typed.resize(columns, rows)
    this.#asked.get(host)?.resize(columns, rows)
    // What is held began on the terminal as it was.
    const [first] = chain
    if (first !== undefined) this.#change(first, () => first.push(first.takeHeld()))
  }

  /** Called before the pane is cleared: it shows whether the host was back at its prompt. */
  noteEnd(host: string, how: ShellEnded, failure?: string): void {
    const pane = this.#paneOf(host)
    for (const part of this.#current.get(host) ?? []) {
      if (!part.typed.isEntered || part.after !== undefined) continue
      const isOver = pane !== undefined && !pane.isFullScreen && isAtPrompt(pane.before, part.before)
      if (how !== 'ended' && isOver) continue
      part.cut = how
      part.failure = failure
    }
  }

  /** Before a report: keys that programs have read are no half lines, and prompts no output. */
  endKeys(): void {
    for (const host of [...this.#open.keys()]) this.#endKeys(host)
    for (const [first] of this.#current.values()) this.#change(first, () => first.settle())
  }

  noteRun(entry: Omit<RunEntry, 'kind'>): void {
    this.#add({ kind: 'run', ...entry })
  }

  /** For a line that is typed now. Until its prompt comes, output belongs to the lines before it. */
  #nextPart(host: string, pane: PaneFacts): HostPart {
    const chain = this.#current.get(host)
    const editor = this.#editors.get(host)
    if (chain !== undefined && chain.length < MOST_AHEAD && isAhead(chain, pane, editor)) {
      const part = new HostPart(
        { ...pane, before: '', isEditing: false, ...(pane.look && { look: { ...pane.look, seen: '' } }) },
        editor?.promptRows,
      )
      part.isAhead = true
      const [first] = chain
      part.typed.isBehind = () => first.isSilent && first.typed.mayBeLate
      first.ahead.push(part.typed)
      const longer = [...chain, part] as const
      // Nothing is doubtful until something is printed.
      for (const each of longer) each.isPending = !chain[0].isSilent
      this.#current.set(host, longer)
      return part
    }
    const ended = this.#ended.get(host)
    if (ended?.next !== undefined) this.#forgetEnded(host)
    const earlier = ended?.next === undefined ? ended?.text : undefined
    const isNewPrompt = pane.isEditing && IS_PROMPT.test(pane.before.trimEnd()) && pane.before !== editor?.prompt
    // Another prompt may have more rows.
    if (editor !== undefined && isNewPrompt) editor.promptRows = undefined
    const part = new HostPart(pane, editor?.promptRows, earlier, editor?.prompt)
    if (ended !== undefined) ended.next ??= part
    if (editor !== undefined && pane.before !== '') editor.rowsBefore = editor.rows
    if (editor !== undefined && isNewPrompt) editor.prompt = pane.before
    // Typed where there was no prompt, or after lines whose prompts did not come.
    part.isDoubtful = pane.before === '' || (chain !== undefined && chain.length > 1)
    for (const each of chain ?? []) {
      each.typed.finish()
      this.#change(each, () => each.settle())
      if (pane.before === '') each.isDoubtful = true
    }
    const last = chain?.at(-1)
    if (last !== undefined && !last.isPending) last.after ??= pane.before
    if (editor !== undefined) editor.lineBefore = isNewPrompt && last?.after === pane.before ? last : undefined
    this.#current.set(host, [part])
    return part
  }

  /** Where each mark of a line editor ends. */
  #marksIn(host: string, bytes: Uint8Array): readonly { readonly to: number; readonly isStart: boolean }[] {
    const editor = this.#editors.get(host) ?? newEditor()
    this.#editors.set(host, editor)
    const { end } = editor
    const most = EDITOR_STARTS.length - 1
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    // Large output is not copied.
    const seam = Buffer.concat([end, bytes.subarray(0, most)])
    editor.end = Uint8Array.from(bytes.length < most ? seam.subarray(-most) : bytes.subarray(-most))
    return [...marksOf(seam).map((mark) => ({ ...mark, to: mark.to - end.length })), ...marksOf(text)]
  }

  #print(host: string, bytes: Uint8Array, nowMs: number): void {
    if (bytes.length === 0) return
    const editor = this.#editors.get(host)
    if (editor?.rows !== undefined) {
      for (let at = bytes.indexOf(LINE_FEED); at >= 0 && editor.rows <= MOST_PROMPT_ROWS; ) {
        editor.rows += 1
        at = bytes.indexOf(LINE_FEED, at + 1)
      }
      // Output, not a prompt.
      if (editor.rows > MOST_PROMPT_ROWS) editor.rows = undefined
    }
    const chain = this.#current.get(host)
    if (chain === undefined) return
    for (const { typed } of chain) typed.print(bytes, nowMs)
    const ended = this.#ended.get(host)
    if (ended?.next?.typed.isJoined) this.#join(host, ended.next)
    if (chain.length > 1) for (const each of chain) each.isPending = true
    this.#change(chain[0], () => chain[0].push(bytes))
  }

  #startEditor(host: string): void {
    const editor = this.#editors.get(host)
    if (editor !== undefined) {
      editor.rows = 0
      editor.rowsBefore = undefined
    }
    const [first, next] = this.#current.get(host) ?? []
    if (first?.typed.isEntered) first.hasEditor = true
    if (first !== undefined && next !== undefined) this.#change(first, () => first.hold(next.typed.look))
  }

  /**
   * A mark alone ends nothing, since any program may print one. The next line begins there if it stands at the prompt; lines
   * before it that do not were read by a program.
   */
  #stopEditor(host: string): void {
    const chain = this.#current.get(host)
    const editor = this.#editors.get(host)
    if (editor !== undefined) editor.rows = undefined
    if (chain === undefined) return
    const [first, ...ahead] = chain
    if (first.typed.isEntered) first.hasStopped = true
    if (editor !== undefined && first.typed.isEntered && first.typed.isEchoed) editor.known = first.before
    if (first.typed.isPasteAlone && !first.isEchoDropped) this.#change(first, () => first.dropEcho())
    if (editor?.rowsBefore !== undefined && first.typed.isEntered) {
      editor.promptRows = Math.min(editor.promptRows ?? editor.rowsBefore, editor.rowsBefore)
      first.promptRows = editor.promptRows
      if (editor.lineBefore !== undefined) editor.lineBefore.promptRows = editor.promptRows
      editor.lineBefore = undefined
      editor.rowsBefore = undefined
    }
    if (first.isOver) return
    let held: Uint8Array = first.held
    this.#change(first, () => {
      held = first.takeHeld()
    })
    const at = first.typed.enters === 1 ? ahead.findIndex((part) => stands(part, held, first)) : -1
    const rest = ahead.slice(Math.max(0, at))
    const [next] = rest
    if (at < 0 || !isFilled(rest) || next === undefined) return this.#change(first, () => first.push(held))
    for (const { typed } of chain.slice(0, at + 1)) typed.finish()
    // The line before it may have printed more than is examined.
    next.typed.confirm()
    next.hasStopped = true
    if (at === 0) first.isPending = false
    if (rest.length === 1) next.isPending = false
    this.#current.set(host, rest)
    this.#change(next, () => next.push(held))
  }

  /** The keys that follow are typed at the prompt, and begin no line. False if the host may not be back there. */
  #stayAtPrompt(host: string, { isEditing, isFullScreen }: PaneFacts): boolean {
    const [first, ...ahead] = this.#current.get(host) ?? []
    if (first === undefined || ahead.length > 0 || !isEditing || isFullScreen) return false
    if (!first.typed.isEntered || !first.hasEditor || first.isPending) return false
    this.#change(first, () => first.atPrompt())
    return true
  }

  #change(part: HostPart, change: () => void): void {
    const before = part.size
    change()
    this.#bytes += part.size - before
  }

  /** Ctrl-C: the line did not run. */
  #cancel(host: string): void {
    const open = this.#open.get(host)
    if (open === undefined) return
    this.#keepSecrets(open.part.typed)
    this.#giveBack(host, open)
  }

  /**
   * Keys without Enter that a program has read, such as `q` in a pager, belong to the line that started it: the next line begins at
   * the prompt after them. A line editor shows there what was typed ahead.
   */
  #endKeys(host: string): void {
    const open = this.#open.get(host)
    if (open === undefined || open.isEdited || open.part.typed.asksSecret) return
    const { typed, isAhead } = open.part
    const pane = this.#paneOf(host)
    if (pane === undefined || !isEmptyPrompt(pane, typed, this.#editors.get(host))) return
    const secrets = [...typed.lines.filter(mayBeSecret).map(({ text }) => text), ...typed.hidden]
    const [first] = this.#current.get(host) ?? []
    if (isAhead) first?.ahead.splice(first.ahead.indexOf(typed), 1)
    this.#giveBack(host, open)
    this.#forgetEnded(host)
    // It may be a password that a program has read without Enter, or be on its way to the line editor, which has not drawn it yet.
    const [line, ...others] = typed.lines
    const text = line === undefined || line.isEdited || others.length > 0 ? '' : line.text
    this.#ended.set(host, { text, secrets, next: undefined })
  }

  /** Some line editors take Esc and Enter for one key, and still read the line: it is none if it is empty. */
  #forgetEscaped(host: string, pane: PaneFacts): void {
    const escaped = this.#escaped.get(host)
    this.#escaped.delete(host)
    if (escaped === undefined) return
    const { part } = escaped
    const [first, ...others] = this.#current.get(host) ?? []
    if (first !== part || others.length > 0 || part.hasBegun || !part.hasAnswered) return
    const isEmpty = part.typed.lines.every(({ text }) => text === '')
    if (isEmpty && pane.isEditing && pane.before === part.before) this.#giveBack(host, escaped)
  }

  /** They are not the beginning of a line. */
  #forgetEnded(host: string): void {
    const ended = this.#ended.get(host)
    this.#ended.delete(host)
    for (const secret of ended?.secrets ?? []) this.#keepSecret(secret)
  }

  /** The keys before this line are its beginning: other hosts may have had them as one line at once. */
  #join(host: string, part: HostPart): void {
    this.#ended.delete(host)
    if (!part.typed.isEntered) return
    const own = this.#entries.find((entry) => entry.kind === 'typed' && entry.parts.get(host) === part)
    const isSame = (entry: SessionEntry): boolean =>
      entry.kind === 'typed' &&
      entry !== own &&
      entry.atMs === own?.atMs &&
      [...entry.parts.values()].some((each) => each.typed.isEntered && textOf(each) === textOf(part))
    const same = this.#entries.find(isSame)
    if (own?.kind !== 'typed' || same?.kind !== 'typed' || same.parts.has(host)) return
    const entries = this.#entries.filter((entry) => entry !== own)
    const merged = { ...same, parts: new Map([...same.parts, [host, part]]) }
    const rest = new Map([...own.parts].filter(([name]) => name !== host))
    this.#entries = entries.map((entry) => (entry === same ? merged : entry))
    if (rest.size > 0) this.#entries.push({ ...own, parts: rest })
  }

  /** What was typed is no line: what the host printed meanwhile follows the line before it. */
  #giveBack(host: string, open: OpenLine): void {
    const { part, chainBefore } = open
    this.#remove(host, open)
    if (part.isAhead || chainBefore === undefined) return
    const [first] = chainBefore
    const last = chainBefore.at(-1)
    // It was no prompt, or stands there no more.
    if (last?.after === part.before) last.after = undefined
    this.#current.set(host, chainBefore)
    const pane = open.isEdited ? this.#paneOf(host) : undefined
    const isAtPrompt = pane !== undefined && this.#stayAtPrompt(host, pane)
    // In its own row, the line editor alone has printed something.
    if (isAtPrompt && !part.hasRows) return
    const { lines } = part.typed
    if (open.isEdited && lines[0]?.state === 'echoed' && lines.every(({ isEdited }) => !isEdited))
      first.cancelled.push(lines.map(({ text }) => text).join(' '))
    this.#change(first, () => first.take(part))
  }

  #remove(host: string, { part, entry }: OpenLine): void {
    this.#open.delete(host)
    this.#forgetPart(host, part)
    entry.parts.delete(host)
    if (entry.parts.size === 0) this.#entries = this.#entries.filter((each) => each !== entry)
  }

  #forgetPart(host: string, part: HostPart): void {
    this.#bytes -= part.size
    if (this.#open.get(host)?.part === part) this.#open.delete(host)
    const others = this.#current.get(host)?.filter((each) => each !== part) ?? []
    if (!isFilled(others)) return void this.#current.delete(host)
    if (others.length === 1) others[0].isPending = false
    this.#current.set(host, others)
  }

  /** Hosts with the same line are one entry. It ran now, whenever its first key was typed. */
  #enter(typed: readonly Typed[], nowMs: number): void {
    const entered: (readonly [host: string, open: OpenLine])[] = []
    for (const { host } of typed) {
      const open = this.#open.get(host)
      if (!open?.part.typed.isEntered) continue
      this.#open.delete(host)
      open.entry.parts.delete(host)
      if (open.entry.parts.size === 0) this.#entries = this.#entries.filter((each) => each !== open.entry)
      entered.push([host, open])
    }
    const inFullScreen = typed.flatMap(({ host }) => (this.#paneOf(host)?.isFullScreen ? [host] : []))
    for (const host of inFullScreen)
      this.#current.get(host)?.[0].besides.push(...new Set(entered.map(([, { part }]) => part.typed)))
    const groups = Map.groupBy(entered, ([, { part }]) => textOf(part)).values()
    for (const [index, group] of [...groups].entries()) {
      const entry = {
        kind: 'typed',
        atMs: nowMs,
        parts: new Map(group.map(([host, { part }]) => [host, part])),
        inFullScreen: index === 0 ? inFullScreen : [],
      } as const
      this.#entries.push(entry)
      for (const [host, open] of group) {
        if (open.part.typed.isAfterEsc) this.#escaped.set(host, { ...open, entry })
        else this.#escaped.delete(host)
      }
    }
  }

  #ask(typed: readonly Typed[], nowMs: number): void {
    if (this.#asked.size === 0) return
    for (const { host, bytes } of typed) {
      const asked = this.#asked.get(host)
      asked?.type(bytes, nowMs)
      if (asked?.isEntered) {
        this.#asked.delete(host)
        if (asked.asksSecret) this.#keepSecrets(asked)
        // Where a shell got it, too, that shell's answer tells whether it is a command.
        else if (typed.every((each) => this.#paneOf(each.host)?.isFullScreen === true)) this.#awaitEcho(host, asked)
      }
    }
  }

  /** An editor draws the end of a paste. Without brackets, each line may be an answer, unless the line that runs names an editor. */
  #awaitPaste(host: string, pane: PaneFacts, bytes: Uint8Array): void {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()
    const runs = this.#current.get(host)?.[0].typed.lines.at(-1)?.text ?? ''
    const inBrackets = PASTED.exec(text)?.[1]
    const pasted = inBrackets ?? (RUNS_EDITOR.test(runs) ? text : '')
    const lines = pasted.split(LINE_END).flatMap((line) => line.trim() || [])
    if (lines.length < 2) return
    const end = lines.at(-1)?.split('\t').reduce(longer, '') ?? ''
    if (end.length < SHORTEST_SECRET || pane.shows?.(end) !== false) return
    const long = lines.filter((line) => line.length >= SHORTEST_SECRET).slice(-MOST_DRAWN)
    this.#pasted.set(host, { lines: long, end, isEntered: inBrackets === undefined })
  }

  /** What is shown before Enter is an echo. */
  #findPasted(host: string): void {
    const pasted = this.#pasted.get(host)
    const pane = pasted && this.#paneOf(host)
    if (pasted === undefined || pane?.isFullScreen !== true || pane.shows?.(pasted.end) !== true) return
    this.#pasted.delete(host)
    this.#drawn.set(host, [...(this.#drawn.get(host) ?? []), ...pasted.lines].slice(-MOST_DRAWN))
  }

  #giveUpPasted(host: string): void {
    const pasted = this.#pasted.get(host)
    this.#pasted.delete(host)
    if (pasted?.isEntered === true) for (const line of pasted.lines) this.#keepSecret(line)
  }

  /** What a full-screen program got is a secret unless it shows it at the cursor, now or soon. */
  #awaitEcho(host: string, { lines, startMs }: TypedLines): void {
    const untilMs = startMs + this.#delays.patienceOf(host)
    const before = this.#paneOf(host)?.before ?? ''
    const drawn = [...(this.#drawn.get(host) ?? []), ...(this.#pasted.get(host)?.lines ?? [])]
    const unseen = lines.flatMap(({ text, keys, isEdited }, index): Unseen[] => {
      if (isEdited || text.length < SHORTEST_SECRET) return []
      if (drawn.some((each) => text.includes(each))) return []
      const readings = readingsOf(keys).filter((each) => each.length >= SHORTEST_SECRET)
      if (index > 0) return [{ text, readings, before: undefined, looks: 0, untilMs }]
      return endsWithSome(before.trimEnd(), text) ? [] : [{ text, readings, before, looks: 0, untilMs }]
    })
    if (unseen.length === 0) return
    const waiting = [...(this.#unseen.get(host) ?? []), ...unseen]
    for (const each of waiting.splice(0, Math.max(0, waiting.length - MOST_UNSEEN))) this.#keepUnseen(each)
    this.#unseen.set(host, waiting)
    this.#lastUnseen.set(host, unseen.at(-1) as Unseen)
  }

  /** Where nothing stands left of it, other output may be taken for an echo. `nowMs`: when the output came. */
  #findUnseen(host: string, nowMs: number | undefined): void {
    const waiting = this.#unseen.get(host)
    const pane = waiting && this.#paneOf(host)
    if (waiting === undefined || pane === undefined) return
    // A command that ended the program at once, such as `exit` in tmux, is shown no more.
    const last = this.#lastUnseen.get(host)
    const isLast = (each: Unseen): boolean => each === last && IS_PROMPT.test(each.before?.trimEnd() ?? '$')
    const isShown = ({ text, before, untilMs }: Unseen): boolean =>
      (nowMs ?? 0) <= untilMs && before?.trim() !== '' && pane.shows?.((before ?? '') + text) === true
    const hidden = waiting.filter((each) => (pane.isFullScreen ? !isShown(each) : !isLast(each)))
    for (const each of hidden) each.looks += 1
    // Output costs no more looks than an echo needs.
    const isLate = ({ looks, untilMs }: Unseen): boolean =>
      !pane.isFullScreen || looks >= MOST_LOOKS || (nowMs ?? 0) > untilMs
    for (const each of hidden.filter(isLate)) this.#keepUnseen(each)
    const left = hidden.filter((each) => !isLate(each))
    if (!pane.isFullScreen) this.#lastUnseen.delete(host)
    if (left.length === 0) this.#unseen.delete(host)
    else this.#unseen.set(host, left)
  }

  #keepUnseen({ text, readings }: Unseen): void {
    for (const each of [text, ...readings]) this.#keepSecret(each)
  }

  #keepSecrets({ hidden }: TypedLines): void {
    for (const text of hidden) this.#keepSecret(text)
  }

  #keepSecret(text: string): void {
    if (!this.#secrets.includes(text)) this.#secrets.push(text)
    if (this.#secrets.length > MOST_SECRETS) this.#secrets.shift()
  }

  #add(entry: SessionEntry): void {
    this.#entries.push(entry)
    if (this.#entries.length > MOST_ENTRIES || this.#bytes > MOST_BYTES) this.#drop()
  }

  /** The oldest. */
  #drop(): void {
    const dropped = this.#entries.splice(0, Math.max(1, Math.floor(this.#entries.length / 10)))
    this.#droppedEntries += dropped.length
    for (const entry of dropped)
      if (entry.kind === 'typed') {
        for (const [host, part] of entry.parts) {
          this.#keepSecrets(part.typed)
          this.#forgetPart(host, part)
        }
      }
  }
}

/** `end`: what its last line shows for certain; `isEntered`: its lines were entered, as if they were typed. */
type Pasted = { readonly lines: readonly string[]; readonly end: string; readonly isEntered: boolean }

/** Lines of pastes, by host; of one paste, no more are secrets. */
const MOST_DRAWN = 200

const longer = (one: string, two: string): string => (two.length > one.length ? two : one)

/** A command line that runs an editor; they read text, and nothing without echo. */
const RUNS_EDITOR =
  /(?:^|[\s;&|(/])(?:vim?|vim\.\w+|nvim|view|vimdiff|nano|rnano|pico|emacs|emacsclient|micro|hx|helix|kak|joe|ne|mcedit|sudoedit|visudo|vipw|git commit|crontab -e)(?:\s|$)/

/** `before`: left of the cursor at Enter; undefined: it is a further line of a paste, and stands anywhere. */
type Unseen = {
  readonly text: string
  readonly readings: readonly string[]
  readonly before: string | undefined
  looks: number
  /** What shows it later is a program that has read it. */
  readonly untilMs: number
}

/** It ends with the end of the text, or, while an echo is on its way, with its beginning. */
const endsWithSome = (shown: string, text: string): boolean =>
  shown.endsWith(text.slice(-LEAST_ECHO)) ||
  Array.from({ length: text.length - LEAST_ECHO }, (_, index) => text.slice(0, LEAST_ECHO + index).trimEnd()).some(
    (start) => start.length >= LEAST_ECHO && shown.endsWith(start),
  )

const LEAST_ECHO = 3
/** By host. */
const MOST_UNSEEN = 20
/** Pieces of output after Enter. */
const MOST_LOOKS = 50

const isFilled = <T>(items: readonly T[]): items is readonly [T, ...T[]] => items.length > 0

const mayBeSecret = ({ text, state }: TypedLines['lines'][number]): boolean =>
  state !== 'echoed' && state !== 'unseen' && text.length >= SHORTEST_SECRET

const newEditor = (): Editor => ({
  end: new Uint8Array(),
  rows: undefined,
  rowsBefore: undefined,
  promptRows: undefined,
  prompt: undefined,
  lineBefore: undefined,
  known: undefined,
})

const textOf = ({ typed }: HostPart): string =>
  JSON.stringify(typed.lines.map(({ text, isEdited }) => [text, isEdited]))

/** Whether what is typed at `pane` is typed before the lines of `chain` have ended. */
function isAhead([first, ...ahead]: Chain, { isEditing, before }: PaneFacts, editor: Editor | undefined): boolean {
  if (!first.typed.isEntered) return false
  // Text left of the cursor may be a question or a prompt, or its own line, whose echo is on its way.
  if (!first.hasBegun) return !(first.hasEditor && isEditing && isPrompt(before, editor))
  // Where a line editor reads and there is no text, something was printed after the prompt, or a program has begun to edit.
  return isEditing ? ahead.length > 0 || isOwnEnd(first, before) : before === ''
}

/** A line editor has not read the line yet: its line feeds have moved the cursor in it. */
function isOwnEnd({ typed, hasStopped }: HostPart, before: string): boolean {
  const shown = before.trim()
  const text = typed.lines.at(-1)?.text ?? ''
  if (hasStopped || text === '' || shown === '' || IS_PROMPT.test(shown)) return false
  if (asksSomething(before) || asksSecret(before)) return false
  return text.includes(shown) || shown.endsWith(text)
}

/** It may stand behind text of a program that ended without a line feed. */
function isPrompt(before: string, editor: Editor | undefined): boolean {
  const { known = '' } = editor ?? {}
  return IS_PROMPT.test(before.trimEnd()) || (known.trim() !== '' && before.endsWith(known))
}

/** Whether a line editor has begun to read a line there since `typed`, and does not have it. */
function isEmptyPrompt(
  { isEditing, isFullScreen, before }: PaneFacts,
  typed: TypedLines,
  editor: Editor | undefined,
): boolean {
  if (!isEditing || isFullScreen || !isPrompt(before, editor)) return false
  const text = typed.lines.at(-1)?.text ?? ''
  return text === '' || !before.trimEnd().endsWith(text)
}

/** Whether the line of `part`, or its paste, and nothing else, stands at the prompt in `output`. */
function stands({ typed, columns }: HostPart, output: Uint8Array, { heldLook: look, heldBefore }: HostPart): boolean {
  const { lines } = typed
  const [line] = lines
  if (typed.enters !== 1 || line === undefined || lines.some(({ isEdited }) => isEdited)) return false
  const isPaste = lines.length > 1
  const text = lines.map((each) => each.text).join('\n')
  const echo = new TypedLines('', typed.columns ?? columns, isPaste, look && { ...look, seen: '' })
  echo.type(Buffer.from(isPaste ? `\x1b[200~${text}\x1b[201~` : text), 0)
  echo.print(output)
  // A terminal multiplexer draws other output there, too.
  if (typed.isOverdue && !isPaste && !echo.isBehindSign(heldBefore)) return standsBehindSign(line.text, output)
  if (isPaste) return echo.lines.every(({ state }) => state === 'echoed')
  return echo.isEchoed || standsBehindSign(line.text, output)
}

/** Also at `... `, where Python reads more of a block. */
const isSigned = (before: string): boolean => HAS_SIGN.test(before) || /^\.{3} /.test(before)

/** At a prompt that goes on behind its sign, such as `➜  ~ `. */
const standsBehindSign = (text: string, output: Uint8Array): boolean =>
  Buffer.from(output)
    .toString()
    .split('\n')
    .map((row) => row.replace(CONTROLS, '').trimEnd())
    .some((row) => row.endsWith(text) && isSigned(row.slice(0, row.length - text.length)))

function marksOf(text: Buffer): readonly { readonly to: number; readonly isStart: boolean }[] {
  const marks: { to: number; isStart: boolean }[] = []
  for (let at = text.indexOf(EDITOR); at >= 0; at = text.indexOf(EDITOR, at + 1)) {
    const to = at + EDITOR_STARTS.length
    const mark = text.toString('latin1', at, to)
    if (mark === EDITOR_STARTS || mark === EDITOR_STOPS) marks.push({ to, isStart: mark === EDITOR_STARTS })
  }
  return marks
}

const EDITOR = EDITOR_STARTS.slice(0, -1)

const isInterrupt = (bytes: Uint8Array): boolean => bytes.length === 1 && bytes[0] === 3

/**
 * Keys after which a line editor may show other text than what is typed: Tab, Ctrl-N, Ctrl-O, Ctrl-P, Ctrl-R, Ctrl-S, Ctrl-V, Ctrl-X,
 * Ctrl-Y, Esc, Ctrl-], Ctrl-^, Ctrl-_. The others do nothing in an empty line, or belong to what is running.
 */
const EDITS: ReadonlySet<number> = new Set([
  0x09, 0x0e, 0x0f, 0x10, 0x12, 0x13, 0x16, 0x18, 0x19, 0x1b, 0x1d, 0x1e, 0x1f,
])

/** It stands for itself. */
const isCharacter = ([first = 0]: Uint8Array): boolean => first > 0x20 && first !== 0x7f

/** Part of a line, or a key that begins to edit one. */
const isText = (bytes: Uint8Array): boolean => bytes.some((byte) => (byte >= 0x20 && byte !== 0x7f) || EDITS.has(byte))
