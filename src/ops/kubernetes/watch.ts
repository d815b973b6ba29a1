/**
 * Lists and watches of the API. A watch keeps what its user needs of each object, and survives a cut connection, an expired version
 * (410), refusals and a dead API server: it never asks again without a wait.
 */
import { onAbort } from '../../base/abort.ts'
import { type Clock, sleep } from '../../base/clock.ts'
import { type JsonRecord, Lines, list, parseJson, record, textOf } from '../../base/json-lines.ts'
import { type KubernetesApi, type KubernetesQuery, type KubernetesRefusal, nonsense, remoteWords } from './api.ts'

const PAGE = 250
/** A server with more sends the rest in vain. */
const MOST_OBJECTS = 20_000
const MOST_PAGES = 400

export type KubernetesList<T> =
  | {
      readonly ok: true
      readonly items: ReadonlyMap<string, T>
      /** To watch from. */
      readonly version: string
      /** There are more than Muster keeps. */
      readonly isCut: boolean
    }
  | KubernetesRefusal

type Project<T> = (object: JsonRecord) => T | undefined

/** UIDs have 36 characters; of a server that sends long ones nothing is kept. */
const MOST_UID = 128

function uidOf(object: JsonRecord): string {
  const uid = textOf(record(object.metadata)?.uid)
  return uid.length > MOST_UID ? '' : uid
}

const STRANGE = 'the API server sent an object of a shape that Muster does not know'

const versionOf = (object: JsonRecord): string => textOf(record(object.metadata)?.resourceVersion)

/** All objects by uid, in pages; `project` says what is kept of each one (undefined: nothing). Never rejects. */
export async function listObjects<T>(
  api: KubernetesApi,
  path: string,
  project: Project<T>,
  { query, signal }: { readonly query?: KubernetesQuery; readonly signal?: AbortSignal } = {},
): Promise<KubernetesList<T>> {
  const items = new Map<string, T>()
  let next: string | undefined
  let version = ''
  let isCut = false
  for (let page = 0; page < MOST_PAGES && !isCut; page += 1) {
    const answer = await api.request('GET', path, {
      query: { ...query, limit: PAGE, continue: next },
      ...(signal && { signal }),
    })
    if (!answer.ok) return answer
    const metadata = record(answer.body.metadata)
    version = textOf(metadata?.resourceVersion)
    for (const object of list(answer.body.items)) {
      const uid = uidOf(object)
      let own: T | undefined
      try {
        own = project(object)
      } catch {
        return nonsense(STRANGE)
      }
      if (own === undefined || uid === '') continue
      isCut = items.size >= MOST_OBJECTS && !items.has(uid)
      if (isCut) break
      items.set(uid, own)
    }
    next = textOf(metadata?.continue) || undefined
    if (next === undefined) break
  }
  return { ok: true, items, version, isCut: isCut || next !== undefined }
}

export type ObjectWatchSink<T> = {
  /** All objects by uid. The map is the watch's own: it changes later. */
  onChange(all: ReadonlyMap<string, T>): void
  /** Why the objects are not up to date; undefined: they are again. */
  onTrouble?(refusal: KubernetesRefusal | undefined): void
}

export type ObjectWatchOptions<T> = {
  /** What is kept of an object; undefined: nothing. */
  readonly project: Project<T>
  readonly query?: KubernetesQuery
  readonly clock: Clock
  random(): number
}

/** Bookmarks come once a minute. */
const BOOKMARK_MS = 60_000
const SILENCE_MS = BOOKMARK_MS + 30_000
const LEAST_WATCH_S = 240
const WATCH_SPREAD_S = 60
const PAUSE_MS = { least: 1_000, most: 30_000 }
/** Rights and credentials do not change soon. */
const REFUSED_PAUSE_MS = { least: 15_000, most: 60_000 }
/** So long it was a watch that worked. */
const GOOD_MS = 10_000
const CHANGE_MS = 200
/** etcd stores at most 1.5 MB per object. */
const MOST_LINE = 4_000_000
/** What a server may send in a go. */
const BURST_BYTES = 2 * 1024 * 1024
const BURST_PAUSE_MS = 100

/** Until it is disposed of. */
export function watchObjects<T>(
  api: KubernetesApi,
  path: string,
  options: ObjectWatchOptions<T>,
  sink: ObjectWatchSink<T>,
): Disposable {
  const watching = new Watch(api, path, options, sink)
  void watching.run()
  return watching
}

class Watch<T> implements Disposable {
  readonly #api: KubernetesApi
  readonly #path: string
  readonly #options: ObjectWatchOptions<T>
  readonly #sink: ObjectWatchSink<T>
  readonly #abort = new AbortController()
  #all = new Map<string, T>()
  #version = ''
  #failures = 0
  #hasTrouble = false
  #report: Disposable | undefined
  #pause: Disposable | undefined

  constructor(api: KubernetesApi, path: string, options: ObjectWatchOptions<T>, sink: ObjectWatchSink<T>) {
    this.#api = api
    this.#path = path
    this.#options = options
    this.#sink = sink
  }

  async run(): Promise<void> {
    const { signal } = this.#abort
    while (!signal.aborted) {
      if (this.#version === '' && !(await this.#list())) continue
      const { clock } = this.#options
      const sinceMs = clock.now()
      const refusal = await this.#follow()
      if (signal.aborted) return
      this.#failures = clock.now() - sinceMs >= GOOD_MS ? 0 : this.#failures + 1
      const isExpired = refusal?.status === 410
      if (isExpired || (refusal !== undefined && refusal.status !== 0)) this.#version = ''
      await this.#wait(isExpired ? undefined : refusal)
    }
  }

  [Symbol.dispose](): void {
    this.#abort.abort()
    this.#report?.[Symbol.dispose]()
    this.#pause?.[Symbol.dispose]()
  }

  async #list(): Promise<boolean> {
    const { project, query } = this.#options
    const { signal } = this.#abort
    const listed = await listObjects(this.#api, this.#path, project, { signal, ...(query && { query }) })
    if (signal.aborted) return false
    if (!listed.ok) {
      this.#failures += 1
      await this.#wait(listed)
      return false
    }
    this.#all = new Map(listed.items)
    this.#version = listed.version
    this.#tell(undefined)
    this.#report?.[Symbol.dispose]()
    this.#report = undefined
    this.#sink.onChange(this.#all)
    return true
  }

  /** Resolves when the watch has ended, with why if that was no orderly end. */
  async #follow(): Promise<KubernetesRefusal | undefined> {
    const { clock, query, random } = this.#options
    const ending = new AbortController()
    let failure: KubernetesRefusal | undefined
    let silence: Disposable | undefined
    const heard = () => {
      silence?.[Symbol.dispose]()
      silence = clock.after(SILENCE_MS, () => fail(410, 'Silent', 'the API server has been silent for too long'))
    }
    const fail = (status: number, reason: string, message: string) => {
      failure ??= { ok: false, status, reason, message }
      ending.abort()
    }
    const lines = new Lines(
      (line) => this.#take(line, fail),
      () => fail(0, 'Unreadable', 'the API server sent an endless line'),
      MOST_LINE,
    )
    const decoder = new TextDecoder()
    let burst = 0
    heard()
    const refusal = await this.#api.stream(
      this.#path,
      {
        query: {
          ...query,
          watch: true,
          allowWatchBookmarks: true,
          resourceVersion: this.#version,
          timeoutSeconds: LEAST_WATCH_S + Math.floor(random() * WATCH_SPREAD_S),
        },
        signal: AbortSignal.any([this.#abort.signal, ending.signal]),
        onBegin: () => this.#tell(undefined),
      },
      async (bytes) => {
        heard()
        lines.push(decoder.decode(bytes, { stream: true }))
        burst += bytes.length
        if (burst < BURST_BYTES) return
        burst = 0
        await sleep(clock, BURST_PAUSE_MS)
      },
    )
    silence?.[Symbol.dispose]()
    return failure ?? refusal
  }

  #take(line: string, fail: (status: number, reason: string, message: string) => void): void {
    if (this.#abort.signal.aborted || line.trim() === '') return
    const event = record(parseJson(line))
    const object = record(event?.object)
    const type = textOf(event?.type)
    if (object === undefined || type === '') return fail(0, 'Unreadable', 'the API server sent no event of a watch')
    if (type === 'ERROR') {
      const code = typeof object.code === 'number' ? object.code : 0
      return fail(code === 0 ? 410 : code, remoteWords(textOf(object.reason)), remoteWords(textOf(object.message)))
    }
    const version = versionOf(object)
    if (version !== '') this.#version = version
    const uid = uidOf(object)
    if (uid === '' || type === 'BOOKMARK') return
    let own: T | undefined
    try {
      own = type === 'DELETED' ? undefined : this.#options.project(object)
    } catch {
      return fail(410, 'Unreadable', STRANGE)
    }
    if (own === undefined) this.#all.delete(uid)
    else if (this.#all.has(uid) || this.#all.size < MOST_OBJECTS) this.#all.set(uid, own)
    this.#reportSoon()
  }

  #reportSoon(): void {
    this.#report ??= this.#options.clock.after(CHANGE_MS, () => {
      this.#report = undefined
      this.#sink.onChange(this.#all)
    })
  }

  #tell(refusal: KubernetesRefusal | undefined): void {
    if (refusal === undefined && !this.#hasTrouble) return
    this.#hasTrouble = refusal !== undefined
    this.#sink.onTrouble?.(refusal)
  }

  /** Longer after each failure, and never the same for two Musters. Undefined: nothing is wrong. */
  async #wait(refusal: KubernetesRefusal | undefined): Promise<void> {
    const { clock, random } = this.#options
    if (refusal !== undefined) this.#tell(refusal)
    const isRefused = refusal !== undefined && refusal.status >= 400 && refusal.status < 500
    const { least, most } = isRefused ? REFUSED_PAUSE_MS : PAUSE_MS
    const longest = Math.min(most, least * 2 ** Math.min(this.#failures, 10))
    const pauseMs = Math.max(refusal?.retryAfterMs ?? 0, (longest / 2) * (1 + random()))
    const waited = Promise.withResolvers<void>()
    using _abort = onAbort(this.#abort.signal, waited.resolve)
    this.#pause = clock.after(pauseMs, waited.resolve)
    await waited.promise
  }
}
