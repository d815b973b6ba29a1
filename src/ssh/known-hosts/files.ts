/** known_hosts files: cached reads, appends in one write under a lock, again where ssh-keygen -R replaced the file meanwhile. */
import { constants } from 'node:fs'
import { chmod, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileReason, MusterError, messageOf } from '../../base/errors.ts'
import { makeDirectories } from '../../base/make-directories.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import {
  formatKnownHostsLine,
  KnownHosts,
  type KnownHostsEntry,
  lookupNameOf,
  parseKnownHosts,
  secondLookupNameOf,
} from '../../inventory/known-hosts/parse.ts'

/** A lock this old belongs to a process that died: recording a key takes milliseconds. */
const STALE_LOCK_MS = 10_000
const LOCK_PATIENCE_MS = 15_000

type Cached = { readonly version: string; readonly hosts: KnownHosts }

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
      throw new MusterError('configuration', `cannot read ${printable(file)}: ${messageOf(error)}`, {
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
      await handle.write(isOpenLine ? `\n${line}` : line)
      if (attempt === 3 || (await stat(file)).ino === ino) return
    } finally {
      await handle.close()
    }
  }
}

/** Waits its turn for the lock file; one that its owner left behind is moved out of the way. Resolves to the unlock. */
async function lock(path: string): Promise<() => Promise<void>> {
  // Also where the clock is set.
  const giveUpAt = performance.now() + LOCK_PATIENCE_MS
  for (;;) {
    try {
      const handle = await open(path, 'wx', 0o600)
      await handle.write(`${process.pid}\n`)
      await handle.close()
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
export type NamingEntries = (name: string) => readonly KnownHostsEntry[]

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
