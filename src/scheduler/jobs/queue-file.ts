/**
 * The file of a queue: an SQLite database that only its user may read, and the lease that lets one scheduler at a time write to it.
 * What a call wrote is on disk when it returns, and a crash at any moment leaves earlier calls whole.
 */

import { randomBytes } from 'node:crypto'
import { chmodSync, closeSync, existsSync, lstatSync, openSync, statSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type SQLOutputValue, type StatementSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { accountName } from '../../base/account.ts'
import { getOrMake } from '../../base/collections.ts'
import { fileReason, MusterError, messageOf } from '../../base/errors.ts'
import { foreignFile, makeOwnDirectories, notOwn } from '../../base/foreign-place.ts'
import { printable } from '../../base/printable.ts'
import { isRunning } from '../../base/processes.ts'
import { watchDirectory } from '../../base/watch-directory.ts'
import { type BrokenRow, brokenRow, DAMAGED_HINT, damaged, damagedFile, damagedRow, type RowName } from './damage.ts'
import { fileDamage, keyOf, logOf, noteOpened, placeOf } from './file-check.ts'

export type SqlRow = Readonly<Record<string, SQLOutputValue>>

const VERSION = 1
const BUSY_MS = 10_000

/** Which queue it is, and how often it was written: this number never falls. */
type Witness = { readonly id: string; readonly writes: number }

export class QueueFile implements Disposable {
  /** Distinguishes this queue from others on the same hosts. */
  readonly id: string
  readonly #database: DatabaseSync
  readonly #name: string
  readonly path: string
  readonly #statements = new Map<string, StatementSync>()
  readonly #opened: Disposable
  readonly #place: string | undefined
  readonly #stampedFromMs: number
  #isInside = false
  #isDamaged = false
  #broken: { readonly version: number; readonly found: BrokenRow | undefined } | undefined
  #seen: Witness | undefined
  #seenVersion = -1
  #isReplaced = false
  /** Of the database alone, without its log; `facts`: of the file, when it was read. */
  #stored: { readonly facts: string; readonly witness: Witness } | undefined

  /**
   * `busyMs`: how long a call waits for another program that writes. `isFrozen`: reads the file without a lock, and
   * writes nothing beside it; only for a file without a log that no other program writes.
   * @throws MusterError 'configuration' when the file is not ours, is damaged, or was written by a newer version. Nothing is written then.
   */
  constructor(path: string, busyMs = BUSY_MS, isFrozen = false) {
    this.path = path
    this.#name = `the queue ${path}`
    try {
      if (path !== ':memory:') {
        makeOwnDirectories(dirname(path))
        const damage = fileDamage(path)
        if (damage !== undefined) throw damagedFile(this.#name, damage)
        requireOwnFile(path)
      }
      this.#database = isFrozen ? frozen(path) : new DatabaseSync(path)
    } catch (error) {
      throw unusable(error, this.#name)
    }
    this.#opened = noteOpened(path)
    try {
      if (!isFrozen)
        this.#database.exec(
          `PRAGMA busy_timeout = ${busyMs}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON`,
        )
      // A file that is up to date is opened without waiting for programs that write.
      const isUpToDate =
        this.#fileVersion() === VERSION && [HAS_LATER_PARTS, STAMPED_FROM].every((sql) => this.one(sql))
      if (!isUpToDate) this.transaction(() => this.#makeUpToDate())
      this.#seen = this.#witness()
      this.id = this.#seen.id
      this.#stampedFromMs = Number(this.one(STAMPED_FROM)?.value)
      this.#place = placeOf(path)
      this.#requireNotOverwritten()
    } catch (error) {
      const told = this.#told(error)
      this.#isDamaged = true
      this[Symbol.dispose]()
      throw told
    }
  }

  [Symbol.dispose](): void {
    // The last program that closes a database copies the log into it and deletes the log, unless it may only read.
    using _reader = this.#isDamaged && hasLog(this.path) ? readerOf(this.path) : undefined
    this.#database.close()
    this.#opened[Symbol.dispose]()
  }

  /** The file was moved, deleted or replaced: what is written to it would be lost, and what was read from it may be old. */
  get isAway(): boolean {
    if (this.#isMoved) return true
    try {
      this.version()
    } catch {
      // Whatever else is wrong with it is told by those who read it.
    }
    return this.#isReplaced
  }

  get #isMoved(): boolean {
    return placeOf(this.path) !== this.#place
  }

  /** @throws MusterError 'configuration' where it is away */
  requireInPlace(): void {
    this.version()
    if (!this.#isMoved) return
    throw new MusterError('configuration', `${this.#name} was moved or deleted while it was in use`, {
      hint: 'Running jobs continue. Move it back, with its -wal, or start with an empty queue: run the command again.',
    })
  }

  /**
   * What tells a job or study that was made then from the one that had its number before, in what lies on hosts: a copy of the file
   * that is put back gives numbers out once more. Undefined: an earlier version made it.
   */
  stampOf(madeMs: number): string | undefined {
    return madeMs >= this.#stampedFromMs ? Math.trunc(Math.abs(madeMs)).toString(36) : undefined
  }

  /** Changes whenever another program has written. @throws MusterError 'configuration' where it was replaced */
  version(): number {
    if (!this.#isInside) this.#requireNotOverwritten()
    const version = this.#dataVersion()
    if (version !== this.#seenVersion || this.#isReplaced) this.#compare()
    this.#seenVersion = version
    return version
  }

  /**
   * A copy that is written over the file (`cp`) is mixed with the log, which SQLite does not notice. A copy that has all that was
   * ever moved from the log to the database does no harm.
   * @throws MusterError 'configuration' where an older one was written
   */
  #requireNotOverwritten(): void {
    const file = this.#place === undefined ? undefined : statSync(this.path, { throwIfNoEntry: false })
    if (file === undefined || keyOf(file) !== this.#place) return
    const facts = `${file.size} ${file.mtimeMs}`
    const before = this.#stored
    if (before?.facts === facts) return
    const witness = storedWitness(this.path)
    if (witness === undefined) return
    if (before !== undefined && isOlder(witness, before.witness)) {
      // Its log must not be moved into the copy.
      this.#isDamaged = true
      throw new MusterError('configuration', `${this.#name} was overwritten with a copy while it was in use`, {
        hint: `Running jobs continue. Stop all programs that use the queue, delete its -wal and -shm, and copy it again: the log does not belong to the copy.`,
      })
    }
    this.#stored = { facts, witness }
  }

  #dataVersion(): number {
    return Number(this.one('PRAGMA data_version')?.data_version)
  }

  #witness(): Witness {
    return witnessOf(this.all(WITNESS))
  }

  /**
   * An older copy that is put back in the same file (`.restore`) would otherwise be taken for what other programs wrote.
   * @throws MusterError 'configuration' where the file holds another queue, or less than it did
   */
  #compare(): void {
    const seen = this.#seen
    const now = this.#witness()
    this.#isReplaced ||= seen !== undefined && isOlder(now, seen)
    if (!this.#isReplaced) this.#seen = now
    else
      throw new MusterError(
        'configuration',
        `${this.#name} was replaced by an older copy or another queue while in use`,
        {
          hint: 'Running jobs continue. Run the command again: it uses the queue that is there now.',
        },
      )
  }

  /**
   * Reads the whole file, which takes a while if it is large.
   * @throws MusterError 'configuration' when it is damaged anywhere.
   */
  checkWhole(): void {
    if (this.one('PRAGMA quick_check(1)')?.quick_check === 'ok') return
    this.#isDamaged = true
    throw damaged(this.#name)
  }

  /** All writes of `work` reach the disk together, or none. Calls may nest. */
  transaction<T>(work: () => T): T {
    if (this.#isInside) return work()
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      this.#isInside = true
      if (this.#seen !== undefined) {
        this.#requireNotOverwritten()
        this.#compare()
      }
      const before = this.#changes()
      const result = work()
      const seen = this.#seen && this.#changes() !== before ? this.#countWrite(this.#seen) : this.#seen
      this.#database.exec('COMMIT')
      this.#seen = seen
      return result
    } catch (error) {
      try {
        this.#database.exec('ROLLBACK')
      } catch {
        // A failed commit may already have rolled back.
      }
      throw isSqlite(error) ? this.#told(error) : error
    } finally {
      this.#isInside = false
    }
  }

  #changes(): unknown {
    return this.one('SELECT total_changes() AS count')?.count
  }

  #countWrite({ id, writes }: Witness): Witness {
    this.#statement("INSERT OR REPLACE INTO meta VALUES ('writes', ?)").run(String(writes + 1))
    return { id, writes: writes + 1 }
  }

  /** @throws MusterError when the file cannot be read. */
  all(sql: string, ...values: readonly SQLInputValue[]): readonly SqlRow[] {
    try {
      return this.#statement(sql).all(...values)
    } catch (error) {
      throw this.#told(error)
    }
  }

  one(sql: string, ...values: readonly SQLInputValue[]): SqlRow | undefined {
    return this.all(sql, ...values)[0]
  }

  /** Returns the number of the inserted row. */
  run(sql: string, ...values: readonly SQLInputValue[]): number {
    return this.transaction(() => Number(this.#statement(sql).run(...values).lastInsertRowid))
  }

  /**
   * The value that a text of this row holds. `isWhole`: whether it has what is read of it. `nameOf`: called only if it is damaged.
   * @throws DamagedRow when the text is damaged.
   */
  json<T, Row>(
    text: SQLOutputValue | undefined,
    column: string,
    isWhole: (value: unknown, row: Row) => value is T,
    nameOf: (row: Row) => RowName,
    row: Row,
  ): T {
    let value: unknown
    try {
      value = JSON.parse(String(text))
    } catch {
      throw this.#damagedRow(nameOf(row), notJson(column))
    }
    if (isWhole(value, row)) return value
    throw this.#damagedRow(nameOf(row), `its ${column} does not have the form that Muster writes`)
  }

  /** What a failed call tells people. */
  #told(error: unknown): MusterError {
    if (isSqlite(error) && error.message === 'malformed JSON') {
      const broken = this.#brokenRow()
      if (broken !== undefined) return this.#damagedRow(broken.row, notJson(broken.column))
    }
    this.#isDamaged ||= isSqlite(error) && HINTS[error.errcode & 0xff] === DAMAGED_HINT
    return unusable(error, this.#name)
  }

  /** Searched for again only when another program has written: a console reads once a second. */
  #brokenRow(): BrokenRow | undefined {
    try {
      const version = this.#dataVersion()
      if (this.#broken?.version !== version)
        this.#broken = { version, found: brokenRow((sql) => this.#statement(sql).get()) }
      return this.#broken.found
    } catch {
      return undefined
    }
  }

  #damagedRow(row: RowName, reason: string): MusterError {
    return damagedRow(this.#name, this.path, row, reason, (sql, ...values) => this.one(sql, ...values))
  }

  #fileVersion(): number {
    return Number(this.one('PRAGMA user_version')?.user_version)
  }

  #makeUpToDate(): void {
    const version = this.#fileVersion()
    if (version > VERSION) throw new MusterError('configuration', 'the queue was written by a newer version of Muster')
    if (version === 0) {
      if (this.one('SELECT 1 FROM sqlite_master') !== undefined)
        throw new MusterError('configuration', `${this.#name} cannot be used: it is another program's database`, {
          hint: 'Move it away, or set another cluster name in hosts.yaml.',
        })
      this.#database.exec(SCHEMA)
      this.run("INSERT INTO meta VALUES ('id', ?)", randomBytes(6).toString('hex'))
      this.#database.exec(`PRAGMA user_version = ${VERSION}`)
    }
    if (this.one(HAS_ALIKE) === undefined) this.#database.exec(ADD_ALIKE)
    if (this.one(STAMPED_FROM) === undefined)
      this.run("INSERT INTO meta VALUES ('stamped-from-ms', ?)", version === 0 ? '0' : String(Date.now()))
    this.#database.exec(LATER_PARTS)
  }

  #statement(sql: string): StatementSync {
    return getOrMake(this.#statements, sql, () => this.#database.prepare(sql))
  }
}

const WITNESS = "SELECT name, value FROM meta WHERE name IN ('id', 'writes')"

function witnessOf(rows: readonly SqlRow[]): Witness {
  const values = new Map(rows.map(({ name, value }) => [name, value]))
  return { id: String(values.get('id')), writes: Number(values.get('writes') ?? 0) }
}

const isOlder = (now: Witness, before: Witness): boolean => now.id !== before.id || now.writes < before.writes

/** Of the database without its log; undefined: it has none yet, or is being written. */
function storedWitness(path: string): Witness | undefined {
  let database: DatabaseSync | undefined
  try {
    database = frozen(path)
    return witnessOf(database.prepare(WITNESS).all())
  } catch {
    return undefined
  } finally {
    database?.close()
  }
}

const notJson = (column: string): string => `its ${column} is not JSON`

const frozen = (path: string): DatabaseSync =>
  new DatabaseSync(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true })

export const hasLog = (path: string): boolean => (statSync(logOf(path), { throwIfNoEntry: false })?.size ?? 0) > 0

function readerOf(path: string): Disposable {
  let reader: DatabaseSync | undefined
  try {
    reader = new DatabaseSync(path, { readOnly: true })
    // It opens the file and its log when it first reads.
    reader.prepare('PRAGMA user_version').get()
  } catch {
    // Then the other connection could not read it either, and has no log to copy.
  }
  return { [Symbol.dispose]: () => reader?.close() }
}

/** Whoever can write it decides what runs on all hosts; commands and environments of jobs are private. */
function requireOwnFile(path: string): void {
  try {
    // SQLite would make it readable for all, and its other files with the same mode.
    closeSync(openSync(path, 'wx', 0o600))
  } catch {
    // It exists, or SQLite reports why it cannot be made.
  }
  const files = [path, logOf(path), `${path}-shm`]
  // This is checked before the modes are changed: the new modes would hide that another user could have written the files.
  for (const file of files) {
    const reason = existsSync(file) ? foreignFile(file) : undefined
    const shown = printable(file)
    if (reason !== undefined)
      throw notOwn(`the queue ${shown}`, reason, `check its owner; if you trust what is in it: chmod go-w ${shown}`)
  }
  for (const [file, mode] of [[dirname(path), 0o700] as const, ...files.map((each) => [each, 0o600] as const)]) {
    try {
      const facts = lstatSync(file)
      // A link may lead to files that are meant for others.
      if (!facts.isSymbolicLink() && (facts.mode & 0o077) !== 0) chmodSync(file, mode)
    } catch {
      // Not there, or another user's.
    }
  }
}

/** Calls back when another program may have written to the queue: perhaps too often, or never. */
export function watchStore(path: string, onWrite: () => void): Disposable {
  const log = `${basename(path)}-wal`
  return watchDirectory(dirname(path), (name) => {
    if (name === log) onWrite()
  })
}

export const SCHEMA = `
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE specs (id INTEGER PRIMARY KEY, spec TEXT NOT NULL);
  CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    spec INTEGER NOT NULL REFERENCES specs,
    environment TEXT,
    user TEXT NOT NULL,
    submitted_ms INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    after TEXT,
    ended_ms INTEGER,
    ran_ms INTEGER
  );
  CREATE INDEX jobs_by_kind ON jobs (kind, priority DESC, id);
  CREATE INDEX jobs_by_after ON jobs (kind) WHERE after IS NOT NULL;
  CREATE INDEX jobs_by_end ON jobs (ended_ms) WHERE ended_ms IS NOT NULL;
  CREATE TABLE lease (one INTEGER PRIMARY KEY CHECK (one = 1), token INTEGER NOT NULL, owner TEXT NOT NULL, until_ms INTEGER NOT NULL);
  INSERT INTO lease VALUES (1, 0, '', 0);
`

/**
 * Parts of later versions; earlier ones ignore them. `tally` saves counting a million ended jobs. In `results`, `attempt`
 * is the one that was read and `is_final` says that it had ended. In `trial`, `point` is the canonical text of its parameters: no
 * study has the same one twice. A job that runs again opens its trial again.
 */
export const LATER_PARTS = `
  CREATE INDEX IF NOT EXISTS jobs_by_spec ON jobs (spec, kind);
  CREATE INDEX IF NOT EXISTS jobs_by_run ON jobs (ended_ms) WHERE ran_ms IS NOT NULL;
  CREATE INDEX IF NOT EXISTS jobs_ended ON jobs (ended_ms, id, spec, kind) WHERE ended_ms IS NOT NULL;
  CREATE INDEX IF NOT EXISTS jobs_in_line ON jobs (alike, user, priority, id)
    WHERE kind = 'queued' AND after IS NULL AND state = '{"kind":"queued"}';
  CREATE INDEX IF NOT EXISTS jobs_bound ON jobs (alike, user, priority)
    WHERE kind = 'queued' AND (after IS NOT NULL OR state <> '{"kind":"queued"}');
  CREATE INDEX IF NOT EXISTS jobs_unnamed ON jobs (spec) WHERE kind = 'queued' AND alike IS NULL;
  CREATE TABLE IF NOT EXISTS spec_family (spec INTEGER PRIMARY KEY, main INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS results (
    job INTEGER PRIMARY KEY, attempt INTEGER NOT NULL, is_final INTEGER NOT NULL, metrics TEXT NOT NULL
  );
  CREATE TABLE IF NOT EXISTS study (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, user TEXT NOT NULL, priority INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, spec TEXT NOT NULL, state TEXT NOT NULL, job_spec INTEGER REFERENCES specs
  );
  CREATE TABLE IF NOT EXISTS trial (
    study INTEGER NOT NULL REFERENCES study, number INTEGER NOT NULL, point TEXT NOT NULL, repetition INTEGER NOT NULL,
    job INTEGER, kind TEXT NOT NULL, more TEXT NOT NULL,
    PRIMARY KEY (study, number), UNIQUE (study, point, repetition)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS trial_open ON trial (study, number) WHERE kind = 'open';
  CREATE INDEX IF NOT EXISTS trial_kind ON trial (study, kind, number);
  CREATE INDEX IF NOT EXISTS trial_job ON trial (job) WHERE job IS NOT NULL;
  CREATE TABLE IF NOT EXISTS trial_step (
    study INTEGER NOT NULL, number INTEGER NOT NULL, step REAL NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (study, number, step)
  ) WITHOUT ROWID;
  CREATE TRIGGER IF NOT EXISTS trial_again AFTER UPDATE OF ended_ms ON jobs
    WHEN old.ended_ms IS NOT NULL AND new.ended_ms IS NULL BEGIN
    UPDATE trial SET kind = 'open', more = json_remove(more, '$.stopping') WHERE job = new.id;
  END;
  CREATE TABLE IF NOT EXISTS tally (kind TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
  INSERT OR REPLACE INTO tally SELECT kind, count(*) FROM jobs GROUP BY kind;
  CREATE TRIGGER IF NOT EXISTS tally_new AFTER INSERT ON jobs BEGIN
    INSERT INTO tally VALUES (new.kind, 1) ON CONFLICT (kind) DO UPDATE SET count = count + 1;
  END;
  CREATE TRIGGER IF NOT EXISTS tally_change AFTER UPDATE OF kind ON jobs WHEN old.kind <> new.kind BEGIN
    UPDATE tally SET count = count - 1 WHERE kind = old.kind;
    INSERT INTO tally VALUES (new.kind, 1) ON CONFLICT (kind) DO UPDATE SET count = count + 1;
  END;
  CREATE TRIGGER IF NOT EXISTS tally_gone AFTER DELETE ON jobs BEGIN
    UPDATE tally SET count = count - 1 WHERE kind = old.kind;
  END;
`
export const HAS_LATER_PARTS = `SELECT 1 WHERE 18 = (SELECT count(*) FROM sqlite_master
  WHERE name IN ('jobs_by_spec', 'jobs_by_run', 'jobs_ended', 'jobs_in_line', 'jobs_bound', 'jobs_unnamed', 'results',
    'tally', 'tally_new', 'tally_change', 'tally_gone', 'study', 'trial', 'trial_open', 'trial_kind', 'trial_job',
    'trial_step', 'trial_again'))`

/** When names on hosts began to have stamps. */
const STAMPED_FROM = "SELECT value FROM meta WHERE name = 'stamped-from-ms'"

/** The number of `alikeOf`, which later parts need; null where a version that does not know it submitted the job. */
export const ADD_ALIKE = 'ALTER TABLE jobs ADD COLUMN alike INTEGER'
export const HAS_ALIKE = "SELECT 1 FROM pragma_table_info('jobs') WHERE name = 'alike'"

const FULL = 13
/** SQLITE_IOERR_SHMSIZE: the file beside it cannot grow. */
const NO_ROOM_BESIDE = 4874

const BUSY_HINT = 'Another program has locked the file. Try again.'

/** Primary result codes (sqlite.org/rescode.html), with what to do. */
const HINTS: Readonly<Record<number, string>> = {
  5: BUSY_HINT,
  6: BUSY_HINT,
  7: 'This machine is short of memory. Free some and try again.',
  8: 'Its file system is mounted read-only, or another user owns the file.',
  10: 'Its disk fails to read or write. Check the kernel log.',
  11: DAMAGED_HINT,
  [FULL]: 'Its disk is full, and nothing was stored. Make room and try again.',
  14: 'Check the owner and mode of its directory, or set XDG_STATE_HOME to another directory.',
  15: BUSY_HINT,
  26: DAMAGED_HINT,
}
const DIRECTORY_HINT = 'Check the owner, mode and mount of its directory, or set XDG_STATE_HOME to another directory.'
const BUG_HINT =
  'The file is not damaged; leave it where it is. Nothing was stored. Please report this as a bug in Muster.'

export function isSqlite(error: unknown): error is Error & { readonly errcode: number } {
  return error instanceof Error && 'errcode' in error && typeof error.errcode === 'number'
}

/** `what`: the file, for people. */
export function unusable(error: unknown, what: string): MusterError {
  if (error instanceof MusterError) return error
  const hint = hintOf(error)
  // The file is not to blame: a constraint, a wrong statement, a value that cannot be stored.
  if (hint === undefined)
    return new MusterError('internal', `${what} refused a call: ${messageOf(error)}`, { hint: BUG_HINT, cause: error })
  const reason = isOfSystem(error) ? fileReason(error) : messageOf(error)
  return new MusterError('configuration', `${what} cannot be used: ${reason}`, { hint, cause: error })
}

const isOfSystem = (error: unknown): boolean => error instanceof Error && 'syscall' in error

function hintOf(error: unknown): string | undefined {
  if (isSqlite(error)) return HINTS[isWithoutRoom(error) ? FULL : error.errcode & 0xff]
  return isOfSystem(error) ? DIRECTORY_HINT : undefined
}

/** The disk of the queue is full: the call may succeed later. */
export function isQueueFull(error: unknown): boolean {
  return error instanceof MusterError && isSqlite(error.cause) && isWithoutRoom(error.cause)
}

function isWithoutRoom({ errcode }: { readonly errcode: number }): boolean {
  return (errcode & 0xff) === FULL || errcode === NO_ROOM_BESIDE
}

const MOST_MS = 60_000

/** How processes of this user on this machine are named as owners of a lease, before their ID. */
const ownNames = (): string => `${accountName()}@${hostname()}, process `

export const ownName = (): string => `${ownNames()}${process.pid}`

/** Whether the owner of a lease is known to have ended, without giving it back. */
export function hasEnded(owner: string): boolean {
  const names = ownNames()
  return owner.startsWith(names) && !isRunning(Number(owner.slice(names.length)))
}

export type LeaseToken = { readonly token: number }

/** Which scheduler drives the queue; one that lost the lease can write nothing more. */
export class DriverLease {
  readonly #file: QueueFile

  constructor(file: QueueFile) {
    this.#file = file
  }

  /** Undefined while another scheduler holds it. `isGone`: whether that owner has ended without giving it back. */
  take(owner: string, nowMs: number, forMs: number, isGone = (_: string) => false): LeaseToken | undefined {
    return this.#file.transaction(() => {
      const { token, until_ms, owner: before } = this.#row()
      if (isHeld(until_ms, nowMs) && !isGone(String(before))) return undefined
      const next = Number(token ?? 0) + 1
      // A file that was repaired may have lost the row.
      this.#file.run('INSERT OR REPLACE INTO lease VALUES (1, ?, ?, ?)', next, owner, nowMs + forMs)
      return { token: next }
    })
  }

  /** @throws MusterError 'interrupted' when another scheduler has taken it. */
  renew(lease: LeaseToken, nowMs: number, forMs: number): void {
    this.#file.transaction(() => {
      this.check(lease)
      this.#file.run('UPDATE lease SET until_ms = ?', nowMs + forMs)
    })
  }

  give({ token }: LeaseToken): void {
    this.#file.transaction(() => this.#file.run('UPDATE lease SET until_ms = 0 WHERE token = ?', token))
  }

  /** For people: `root@vm (pid 3533)`; undefined: no scheduler is running. */
  owner(nowMs: number): string | undefined {
    const { owner, until_ms } = this.#row()
    if (!isHeld(until_ms, nowMs) || hasEnded(String(owner))) return undefined
    return String(owner).replace(/, process (\d+)$/, ' (pid $1)')
  }

  /** @throws MusterError 'interrupted' when another scheduler has taken it. */
  check({ token }: LeaseToken): void {
    if (Number(this.#row().token) === token) return
    throw new MusterError('interrupted', 'another scheduler has taken over this queue')
  }

  #row(): SqlRow {
    return this.#file.one('SELECT token, owner, until_ms FROM lease') ?? {}
  }
}

function isHeld(untilMs: unknown, nowMs: number): boolean {
  return Number(untilMs) > nowMs && Number(untilMs) <= nowMs + MOST_MS
}
