/** Files to and from hosts, on the embedded hosts (real SSH) and on the transport `local`: any names, any bytes, nothing half. */
import { execFileSync, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  lchownSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import type { Endpoint } from '../../../src/inventory/host.ts'
import { bytePathOf, partialOf } from '../../../src/ssh/copy/byte-path.ts'
import { copyToHosts } from '../../../src/ssh/copy/copy-to-hosts.ts'
import type { CopyEvent, CopyVia, HostResult, PathEvent } from '../../../src/ssh/copy/events.ts'
import { fetchFromHosts } from '../../../src/ssh/copy/fetch-from-hosts.ts'
import type { CopyWires } from '../../../src/ssh/copy/on-each-host.ts'
import { scanSources } from '../../../src/ssh/copy/source.ts'
import {
  type EmbeddedHosts,
  embeddedEndpoints,
  startEmbeddedHosts,
} from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { createHostKeyVerifier } from '../../../src/ssh/known-hosts/verifier.ts'
import { createLocalTransport } from '../../../src/ssh/local/local-transport.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import type { Transport } from '../../../src/ssh/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { writeProgram } from '../../support/program.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { nobody } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'

type CopyOptions = {
  readonly isDryRun?: boolean
  /** False: as on hosts without Python. */
  readonly hasHelpers?: boolean
  readonly keepsSpecialBits?: boolean
  readonly signal?: AbortSignal
  /** In place of the local one. */
  readonly transport?: Transport
  readonly via?: CopyVia
  readonly onEvent?: (event: CopyEvent) => void
  readonly onPath?: (event: PathEvent) => void
}

describe('copying to hosts', () => {
  let embedded: EmbeddedHosts
  let directory: string
  let source: string
  const transports = { ssh2: createSsh2Transport(), local: createLocalTransport({ spawnPty: spawnLocalPty }) }
  beforeAll(async () => {
    embedded = await startEmbeddedHosts({ count: 3, spawnPty: spawnLocalPty })
  })
  afterAll(async () => {
    await embedded.close()
  })
  beforeEach(() => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), 'muster-copy-')))
    source = join(directory, 'source')
    mkdirSync(source)
  })
  afterEach(() => {
    rmSync(directory, { recursive: true, force: true })
  })

  const wires = (events: CopyEvent[], results: Map<string, HostResult>, options: CopyOptions): CopyWires => ({
    transports: { ...transports, local: options.transport ?? transports.local },
    hostKeys: createHostKeyVerifier(),
    credentials: nobody,
    clock: systemClock,
    fanOut: 8,
    signal: options.signal ?? new AbortController().signal,
    onEvent: (event) => {
      events.push(event)
      if (event.type === 'result') results.set(event.host, event.result)
      options.onEvent?.(event)
    },
  })

  const copy = async (
    endpoints: readonly Endpoint[],
    sources: readonly string[],
    destination: (host: string) => string,
    options: CopyOptions = {},
  ) => {
    const events: CopyEvent[] = []
    const results = new Map<string, HostResult>()
    const readBytes = await copyToHosts(
      endpoints,
      {
        tree: await scanSources(sources.map(bytePathOf), { keepsSpecialBits: options.keepsSpecialBits ?? false }),
        destinationOf: ({ host }) => destination(host),
        isDryRun: options.isDryRun ?? false,
        hasHelpers: options.hasHelpers ?? true,
        via: options.via ?? 'auto',
        onPath: (event) => options.onPath?.(event),
      },
      wires(events, results, options),
    )
    return { events, readBytes, result: (host: string) => results.get(host)! }
  }
  /** This machine, with other programs in place of its own. */
  const withPrograms = (place: string, before = ''): Transport => ({
    async connect(endpoint, context) {
      const connection = await transports.local.connect(endpoint, context)
      return {
        ...connection,
        exec: (command, handlers) => connection.exec(`PATH="${place}:$PATH"; ${before}${command}`, handlers),
        close: () => connection.close(),
      }
    },
  })
  const local: Endpoint = { ...endpointOf('here'), transport: 'local' }

  it.each([
    true,
    false,
  ])('copies a tree with any names, modes, times and links to every host (with a helper: %s)', async (hasHelpers) => {
    const names = ['plain', '-rf', 'a b', "it's", 'new\nline', '\n', '\\n', '$HOME', '*', ' ', 'é', '日本']
    for (const name of names) writeFileSync(join(source, name), `contents of ${name}`)
    writeFileSync(Buffer.concat([Buffer.from(`${source}/bad`), Buffer.from([0xff, 0xfe, 0x80])]), 'not UTF-8')
    writeFileSync(join(source, 'empty'), '')
    mkdirSync(join(source, 'void'))
    mkdirSync(join(source, 'locked'))
    writeFileSync(join(source, 'locked', 'inside'), 'inside')
    writeFileSync(join(source, 'program'), '#!/bin/sh\n', { mode: 0o750 })
    symlinkSync('to\nnowhere\n', join(source, 'dangling'))
    symlinkSync('locked', join(source, 'link'))
    symlinkSync('-t/tmp', join(source, 'option'))
    utimesSync(join(source, 'plain'), 1_000_000_000.5, 1_000_000_000.5)
    chmodSync(join(source, 'locked'), 0o555)
    const { result } = await copy(embeddedEndpoints(embedded), [source], (host) => join(directory, host), {
      hasHelpers,
    })
    for (const { name } of embedded.hosts) {
      expect(result(name)).toMatchObject({ outcome: 'ok', failed: 0 })
      expect(listing(join(directory, name))).toEqual(listing(source))
    }
    chmodSync(join(source, 'locked'), 0o755)
    for (const { name } of embedded.hosts) chmodSync(join(directory, name, 'locked'), 0o755)
  })

  it('reads the source once for all hosts, and delivers many segments unchanged', async () => {
    const bytes = randomBytes(9_000_001)
    writeFileSync(join(source, 'big'), bytes)
    const { readBytes } = await copy(embeddedEndpoints(embedded), [join(source, 'big')], (host) =>
      join(directory, host),
    )
    for (const { name } of embedded.hosts) expect(readFileSync(join(directory, name)).equals(bytes)).toBe(true)
    expect(readBytes).toBeLessThan(2 * bytes.length)
  })

  it.each([true, false])('copies any bytes in files of any size (with a helper: %s)', async (hasHelpers) => {
    const anyFile = fc.oneof(
      fc.uint8Array({ maxLength: 3000 }),
      fc.uint8Array({ min: 1, maxLength: 300 }),
      fc.string({ maxLength: 300 }).map((text) => Buffer.from(text)),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(anyFile, { minLength: hasHelpers ? 8 : 1, maxLength: 10 }), async (contents) => {
        const from = mkdtempSync(join(directory, 'from-'))
        for (const [index, bytes] of contents.entries()) writeFileSync(join(from, String(index)), bytes)
        const { result } = await copy([embeddedEndpoints(embedded)[0]!], [from], () => `${from}-to`, {
          hasHelpers,
        })
        expect(result('m1')).toMatchObject({ outcome: 'ok', copied: contents.length })
        expect(listing(`${from}-to`)).toEqual(listing(from))
      }),
      { numRuns: 10 },
    )
  })

  it('copies into an existing directory, and to a new name, as cp does', async () => {
    writeFileSync(join(source, 'a'), 'a')
    writeFileSync(join(source, 'b'), 'b')
    mkdirSync(join(directory, 'there'))
    await copy([local], [join(source, 'a')], () => join(directory, 'there'))
    expect(readdirSync(join(directory, 'there'))).toEqual(['a'])
    await copy([local], [join(source, 'a')], () => join(directory, 'name'))
    expect(readFileSync(join(directory, 'name'), 'utf8')).toBe('a')
    await copy([local], [join(source, 'a'), join(source, 'b')], () => join(directory, 'made', 'below'))
    expect(readdirSync(join(directory, 'made', 'below')).sort()).toEqual(['a', 'b'])
    await copy([local], [join(source, 'a')], () => `${join(directory, 'slash')}/`)
    expect(readdirSync(join(directory, 'slash'))).toEqual(['a'])
    await copy([local], [`${source}/.`], () => join(directory, 'contents'))
    expect(readdirSync(join(directory, 'contents')).sort()).toEqual(['a', 'b'])
    const { result } = await copy([local], [join(source, 'a')], () => join(directory, 'no', 'such'))
    expect(result('here')).toMatchObject({ outcome: 'failed', reason: `${directory}/no: No such directory` })
    const other = await copy([local], [join(source, 'a'), join(source, 'b')], () => join(directory, 'name'))
    expect(other.result('here')).toMatchObject({ outcome: 'failed', reason: `${directory}/name: Not a directory` })
  })

  it('refuses in advance two sources that would become the same file', async () => {
    for (const name of ['a', 'b']) {
      mkdirSync(join(source, name))
      writeFileSync(join(source, name, 'x'), `x of ${name}`)
    }
    const target = join(directory, 'target')
    const twice = copy([local], [join(source, 'a', 'x'), join(source, 'b', 'x')], () => target)
    await expect(twice).rejects.toThrow(`${source}/a/x and ${source}/b/x would both become x`)
    const contents = copy([local], [`${source}/a/.`, `${source}/b/.`], () => target)
    await expect(contents).rejects.toThrow(`${source}/a/x and ${source}/b/x would both become x`)
    expect(readdirSync(directory)).toEqual(['source'])
  })

  it('merges directories of the same name, as cp does', async () => {
    for (const name of ['a', 'b']) {
      mkdirSync(join(source, name, 'd'), { recursive: true })
      writeFileSync(join(source, name, 'd', name), name)
    }
    const target = join(directory, 'target')
    const { result } = await copy([local], [join(source, 'a', 'd'), join(source, 'b', 'd')], () => target)
    expect(result('here')).toMatchObject({ outcome: 'ok', copied: 2 })
    expect(readdirSync(join(target, 'd'))).toEqual(['a', 'b'])
  })

  it('skips identical files, replaces others, and sets the mode of both', async () => {
    writeFileSync(join(source, 'same'), 'same')
    writeFileSync(join(source, 'other'), 'new')
    const target = join(directory, 'target')
    mkdirSync(target)
    writeFileSync(join(target, 'same'), 'same', { mode: 0o600 })
    writeFileSync(join(target, 'other'), 'old')
    const inode = statSync(join(target, 'same')).ino
    const { events, result } = await copy([local], [`${source}/.`], () => target)
    expect(result('here')).toMatchObject({ copied: 1, identical: 1 })
    expect(statSync(join(target, 'same'))).toMatchObject({ ino: inode, mode: 0o100644 })
    expect(readFileSync(join(target, 'other'), 'utf8')).toBe('new')
    expect(
      events
        .filter((event) => event.type === 'file')
        .map(({ action }) => action)
        .sort(),
    ).toEqual(['copied', 'identical'])
  })

  it('reports each file that cannot be copied, and copies the rest', async () => {
    for (const name of ['a', 'b', 'c']) writeFileSync(join(source, name), name)
    const target = join(directory, 'target')
    mkdirSync(join(target, 'b'), { recursive: true })
    const { events, result } = await copy([local], [`${source}/.`], () => target)
    expect(result('here')).toMatchObject({ outcome: 'failed', copied: 2, failed: 1 })
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'file', action: 'failed', path: `${target}/b`, reason: 'Is a directory' }),
    )
    expect(readdirSync(target).sort()).toEqual(['a', 'b', 'c'])
  })

  it.skipIf(process.getuid?.() !== 0).each(['', '/', '/named'])(
    'goes to no destination that is a link of another account: link%s',
    async (end) => {
      mkdirSync(join(directory, 'elsewhere'))
      symlinkSync(join(directory, 'elsewhere'), join(directory, 'planted'))
      lchownSync(join(directory, 'planted'), 65_534, 65_534)
      writeFileSync(join(source, 'file'), 'new')
      const { result } = await copy([local], [join(source, 'file')], () => `${join(directory, 'planted')}${end}`)
      expect(result('here')).toMatchObject({
        outcome: 'failed',
        reason: expect.stringContaining('planted: it is a link that belongs to another account'),
      })
      expect(readdirSync(join(directory, 'elsewhere'))).toEqual([])
    },
  )

  it.each([
    true,
    false,
  ])('never writes through a link that somebody puts in place of a partial file (with a helper: %s)', async (hasHelpers) => {
    const [target, victim] = [join(directory, 'target'), join(directory, 'victim')]
    mkdirSync(target)
    writeFileSync(victim, 'precious', { mode: 0o600 })
    writeFileSync(join(source, 'big'), randomBytes(24_000_000))
    const swapped: string[] = []
    const { result } = await copy([local], [join(source, 'big')], () => target, {
      hasHelpers,
      onEvent: ({ type }) => {
        if (type !== 'progress' || swapped.length > 0) return
        for (const name of readdirSync(target).filter((each) => each.startsWith('.muster-'))) {
          rmSync(join(target, name))
          symlinkSync(victim, join(target, name))
          swapped.push(name)
        }
      },
    })
    expect(swapped).toHaveLength(1)
    expect(result('here')).toMatchObject({ outcome: 'failed', copied: 0, failed: 1 })
    expect([readFileSync(victim, 'utf8'), statSync(victim).mode & 0o777]).toEqual(['precious', 0o600])
    expect(readdirSync(target)).toEqual([])
  })

  it('replaces no pipe or device, and replaces a link instead of its target', async () => {
    for (const name of ['pipe', 'link', 'linked']) writeFileSync(join(source, name), 'new')
    const target = join(directory, 'target')
    mkdirSync(join(target, 'kept'), { recursive: true })
    execFileSync('mkfifo', [join(target, 'pipe')])
    symlinkSync('kept', join(target, 'link'))
    symlinkSync('elsewhere', join(target, 'linked'))
    const { events } = await copy([local], [`${source}/.`], () => target)
    expect(events).toContainEqual(
      expect.objectContaining({ path: `${target}/pipe`, reason: 'Is a device, pipe or socket' }),
    )
    expect(lstatSync(join(target, 'pipe')).isFIFO()).toBe(true)
    expect(readFileSync(join(target, 'link'), 'utf8')).toBe('new')
    expect(readdirSync(join(target, 'kept'))).toEqual([])
    expect(readdirSync(target).sort()).toEqual(['kept', 'link', 'linked', 'pipe'])
  })

  it.skipIf(process.getuid?.() !== 0).each([true, false])(
    "goes through a directory's link of the own account, not of another one (with a helper: %s)",
    async (hasHelpers) => {
      const target = join(directory, 'target')
      for (const name of ['own', 'planted']) {
        mkdirSync(join(source, name, 'deep'), { recursive: true })
        for (const each of ['a', 'b', 'c']) writeFileSync(join(source, name, each), 'new')
        mkdirSync(join(directory, `of-${name}`), { mode: 0o700 })
        mkdirSync(target, { recursive: true })
        symlinkSync(join(directory, `of-${name}`), join(target, name))
      }
      lchownSync(join(target, 'planted'), 65_534, 65_534)
      const { events, result } = await copy([local], [`${source}/.`], () => target, { hasHelpers })
      expect(result('here')).toMatchObject({ outcome: 'failed', copied: 3 })
      const reasons = events.flatMap((event) => (event.type === 'file' && event.reason ? [event.reason] : []))
      expect(reasons.join()).toContain('it is a link that belongs to another account')
      expect(readdirSync(join(directory, 'of-own'))).toEqual(['a', 'b', 'c', 'deep'])
      expect(readdirSync(join(directory, 'of-planted'))).toEqual([])
      expect(statSync(join(directory, 'of-planted')).mode & 0o777).toBe(0o700)
    },
  )

  it.each([
    true,
    false,
  ])('checks many small files, and reports the result of each (with a helper: %s)', async (hasHelpers) => {
    const names = Array.from({ length: 20 }, (_, index) => `f${String(index).padStart(2, '0')}`)
    for (const name of names) writeFileSync(join(source, name), `new ${name}`, { mode: 0o640 })
    const target = join(directory, 'target')
    mkdirSync(join(target, 'f00'), { recursive: true })
    mkdirSync(join(target, 'kept'))
    execFileSync('mkfifo', [join(target, 'f01')])
    symlinkSync('kept', join(target, 'f02'))
    symlinkSync('elsewhere', join(target, 'f03'))
    writeFileSync(join(target, 'f04'), 'new f04', { mode: 0o600 })
    writeFileSync(join(target, 'f05'), 'old f05')
    const sameInode = statSync(join(target, 'f04')).ino
    const dry = await copy([local], [`${source}/.`], () => target, { hasHelpers, isDryRun: true })
    expect(readFileSync(join(target, 'f05'), 'utf8')).toBe('old f05')
    expect(dry.result('here')).toMatchObject({ copied: 17, identical: 1, failed: 2 })
    const { events, result } = await copy([local], [`${source}/.`], () => target, { hasHelpers })
    expect(result('here')).toMatchObject({ outcome: 'failed', copied: 17, identical: 1, failed: 2 })
    const reasons = events.flatMap((event) => (event.type === 'file' && event.reason ? [event.reason] : []))
    expect(reasons.sort()).toEqual(['Is a device, pipe or socket', 'Is a directory'])
    for (const name of names.slice(2)) {
      expect(readFileSync(join(target, name), 'utf8')).toBe(`new ${name}`)
      expect(lstatSync(join(target, name)).mode & 0o7777).toBe(0o640)
    }
    expect(statSync(join(target, 'f04')).ino).toBe(sameInode)
    expect(readdirSync(join(target, 'kept'))).toEqual([])
    expect(readdirSync(target).sort()).toEqual([...names, 'kept'])
  })

  it('checks once for each host, and not for each file, how it can write to open files', async () => {
    const programs = join(directory, 'programs')
    writeProgram(join(programs, 'find'), `echo "$*" >>"$0.calls"; PATH=\${PATH#*:}; exec find "$@"`)
    for (const name of ['a', 'b', 'c']) writeFileSync(join(source, name), name)
    for (const name of ['d', 'e']) writeFileSync(join(source, name), randomBytes(3_000_000))
    const target = join(directory, 'target')
    const options = { hasHelpers: false, transport: withPrograms(programs) }
    const { result } = await copy([local], [source], () => target, options)
    expect(result('here')).toMatchObject({ outcome: 'ok', copied: 5 })
    expect(listing(target)).toEqual(listing(source))
    const calls = readFileSync(join(programs, 'find.calls'), 'utf8').split('\n')
    expect(calls.filter((call) => call === '/ -prune -inum 0')).toHaveLength(1)
  })

  it.each([
    true,
    false,
  ])("follows the user's own links below the destination (with a helper: %s)", async (hasHelpers) => {
    mkdirSync(join(source, 'd', 'link', 'sub'), { recursive: true })
    const names = Array.from({ length: 10 }, (_, index) => `${index}`)
    for (const name of names) writeFileSync(join(source, 'd', 'link', 'sub', name), name)
    writeFileSync(join(source, 'd', 'link', 'large'), randomBytes(200_000))
    const [target, elsewhere] = [join(directory, 'target'), join(directory, 'elsewhere')]
    for (const each of [join(target, 'd'), elsewhere]) mkdirSync(each, { recursive: true })
    symlinkSync(elsewhere, join(target, 'd', 'link'))
    const { result } = await copy([local], [join(source, 'd')], () => `${target}/`, { hasHelpers })
    expect(result('here')).toMatchObject({ outcome: 'ok', copied: 11 })
    expect(readdirSync(join(elsewhere, 'sub')).sort()).toEqual(names)
    expect(readFileSync(join(elsewhere, 'large'))).toEqual(readFileSync(join(source, 'd', 'link', 'large')))
  })

  describe.runIf(process.geteuid?.() === 0)(
    'where another account puts a link in place of a directory meanwhile',
    () => {
      it.each([
        ['small files', false, 600, 100],
        ['larger files', false, 100, 70_000],
        ['small files with a helper', true, 4000, 3000],
      ])('writes nothing where the link leads: %s', async (_, hasHelpers, count, bytes) => {
        mkdirSync(join(source, 'd', 'sub'), { recursive: true })
        for (let index = 0; index < count; index += 1) {
          writeFileSync(join(source, 'd', 'sub', `${index}`), `${index} `.repeat(bytes).slice(0, bytes))
        }
        const [target, elsewhere] = [join(directory, 'target'), join(directory, 'elsewhere')]
        for (const each of [target, elsewhere]) mkdirSync(each)
        let isSwapped = false
        const { result, events } = await copy([local], [join(source, 'd')], () => `${target}/`, {
          hasHelpers,
          onEvent: ({ type }) => {
            if (type !== 'progress' || isSwapped || readdirSync(join(target, 'd', 'sub')).length === 0) return
            isSwapped = true
            renameSync(join(target, 'd'), join(target, 'moved'))
            mkdirSync(join(elsewhere, 'sub'))
            symlinkSync(elsewhere, join(target, 'd'))
            lchownSync(join(target, 'd'), 65_534, 65_534)
          },
        })
        expect(isSwapped).toBe(true)
        expect(result('here').outcome).toBe('failed')
        expect(readdirSync(join(elsewhere, 'sub'))).toEqual([])
        const reason = 'it is a link that belongs to another account'
        expect(events).toContainEqual(expect.objectContaining({ action: 'failed', reason }))
      })
    },
  )

  it('removes small partial files of a killed copy, but none of a running one', async () => {
    for (let index = 0; index < 10; index += 1) writeFileSync(join(source, `f${index}`), `contents ${index}`)
    const target = join(directory, 'target')
    mkdirSync(target)
    const ended = spawnSync('true').pid
    const leftOver = (name: string, pid: number) => join(target, `${partialOf(name)}.${hostname()}.${pid}`)
    writeFileSync(leftOver('f1', ended), 'half')
    writeFileSync(leftOver('f2', process.pid), 'of somebody who works')
    expect((await copy([local], [`${source}/.`], () => target)).result('here')).toMatchObject({ copied: 10 })
    const names = readdirSync(target).filter((name) => name.startsWith('.muster'))
    expect(names).toEqual([basename(leftOver('f2', process.pid))])
  })

  it('reports a directory that cannot be created once, not for each file in it', async () => {
    mkdirSync(join(source, 'deep', 'er'), { recursive: true })
    writeFileSync(join(source, 'deep', 'er', 'file'), 'x')
    const target = join(directory, 'target')
    mkdirSync(target)
    writeFileSync(join(target, 'deep'), 'a file is in the way')
    const { events } = await copy([local], [`${source}/.`], () => target)
    const failed = events.filter((event) => event.type === 'file')
    expect(failed).toEqual([expect.objectContaining({ path: `${target}/deep`, reason: 'File exists' })])
  })

  it('keeps holes of sparse files', async () => {
    writeFileSync(join(source, 'holes'), 'begin')
    truncateSync(join(source, 'holes'), 64 * 1024 * 1024)
    const { result } = await copy([embeddedEndpoints(embedded)[0]!], [join(source, 'holes')], () =>
      join(directory, 'out'),
    )
    const { size, blocks } = statSync(join(directory, 'out'))
    expect(size).toBe(64 * 1024 * 1024)
    expect(blocks * 512).toBeLessThan(2 * 1024 * 1024)
    expect(result('m1').sentBytes).toBeLessThan(2 * 1024 * 1024)
  })

  it('resumes an interrupted copy, and shows nothing under the final name before', async () => {
    const bytes = randomBytes(24_000_000)
    writeFileSync(join(source, 'big'), bytes)
    const target = join(directory, 'target')
    mkdirSync(target)
    const cut = new AbortController()
    let arrived = 0
    const endpoint = embeddedEndpoints(embedded)[0]!
    const first = await copy([endpoint], [join(source, 'big')], () => target, {
      signal: cut.signal,
      onEvent: (event) => {
        if (event.type === 'progress') arrived += event.bytes
        if (arrived > 6_000_000) cut.abort()
      },
    })
    expect(first.result('m1')).toMatchObject({ outcome: 'cancelled' })
    expect(readdirSync(target)).toEqual([expect.stringMatching(/^\.muster-/)])
    const second = await copy([endpoint], [join(source, 'big')], () => target)
    expect(second.events).toContainEqual(
      expect.objectContaining({ action: 'copied', resumedBytes: expect.any(Number) }),
    )
    expect(second.result('m1').sentBytes).toBeLessThan(bytes.length - 4_000_000)
    expect(readdirSync(target)).toEqual(['big'])
    expect(readFileSync(join(target, 'big')).equals(bytes)).toBe(true)
  })

  it('continues an interrupted copy of a directory to a new name, and copies into it once it is complete', async () => {
    const names = ['a', 'b', 'c', 'd']
    for (const name of names) writeFileSync(join(source, name), randomBytes(3_000_000))
    const target = join(directory, 'target')
    const cut = new AbortController()
    const endpoint = embeddedEndpoints(embedded)[0]!
    const first = await copy([endpoint], [source], () => target, {
      signal: cut.signal,
      onEvent: (event) => event.type === 'file' && cut.abort(),
    })
    expect(first.result('m1')).toMatchObject({ outcome: 'cancelled' })
    const planned = await copy([endpoint], [source], () => target, { isDryRun: true })
    expect(planned.events).toContainEqual(expect.objectContaining({ path: `${target}/d`, action: 'would-copy' }))
    const other = join(directory, 'other')
    mkdirSync(other)
    await copy([endpoint], [other], () => target)
    expect(readdirSync(target)).toContain('other')
    rmSync(join(target, 'other'), { recursive: true })
    // A failure is no end either.
    mkdirSync(join(target, 'd', 'in-the-way'), { recursive: true })
    const second = await copy([endpoint], [source], () => target)
    expect(second.result('m1')).toMatchObject({ outcome: 'failed', failed: 1 })
    rmSync(join(target, 'd'), { recursive: true })
    const third = await copy([endpoint], [source], () => target)
    expect(third.result('m1')).toMatchObject({ outcome: 'ok', copied: 1, identical: 3 })
    expect(readdirSync(target).sort()).toEqual(names)
    expect(readdirSync(directory).sort()).toEqual(['other', 'source', 'target'])
    await copy([endpoint], [source], () => target)
    expect(readdirSync(target).sort()).toEqual([...names, 'source'])
  })

  /** Partial files in a directory that other copies left: those that go, and those that stay with the file of the user. */
  const leavePartials = (target: string) => {
    const ended = spawnSync('true').pid
    const eightDaysAgo = Date.now() / 1000 - 8 * 86_400
    const leave = (name: string, end: string, isOld: boolean) => {
      const path = `${partialOf(join(target, name))}.${end}`
      writeFileSync(path, 'half')
      if (isOld) utimesSync(path, eightDaysAgo, eightDaysAgo)
      return basename(path)
    }
    const stale = [leave('one', `${hostname()}.${ended}`, true), leave('two', 'renamed.host.7', true)]
    const kept = [leave('three', `${hostname()}.${ended}`, false), leave('four', `${hostname()}.${process.pid}`, true)]
    writeFileSync(join(target, '.muster-own'), 'a file of the user')
    utimesSync(join(target, '.muster-own'), eightDaysAgo, eightDaysAgo)
    return { stale, kept: [...kept, '.muster-own'] }
  }

  it.each([
    ['a large file', 1, 2_000_000],
    ['small files that its helper takes', 9, 10],
  ])('removes partial files that nobody resumed for a week, and no others, while it copies %s', async (_, count, size) => {
    const names = Array.from({ length: count }, (_, index) => `file-${index}`)
    for (const name of names) writeFileSync(join(source, name), randomBytes(size))
    const target = join(directory, 'target')
    mkdirSync(target)
    const { stale, kept } = leavePartials(target)
    const sources = names.map((name) => join(source, name))
    expect((await copy([local], sources, () => target)).result('here')).toMatchObject({ copied: count })
    const here = () => readdirSync(target)
    await waitUntil(() => stale.every((name) => !here().includes(name)), 'the old files to go', 10_000)
    expect(here().sort()).toEqual([...kept, ...names].sort())
  })

  it('does not resume from bytes that are not the beginning of the file', async () => {
    const bytes = randomBytes(2_000_000)
    writeFileSync(join(source, 'big'), bytes)
    const target = join(directory, 'target')
    mkdirSync(target)
    const cut = new AbortController()
    await copy([local], [join(source, 'big')], () => target, {
      signal: cut.signal,
      onEvent: (event) => event.type === 'progress' && cut.abort(),
    })
    const [leftOver = ''] = readdirSync(target)
    writeFileSync(join(target, leftOver), randomBytes(1_500_000))
    const second = await copy([local], [join(source, 'big')], () => target)
    expect(second.result('here')).toMatchObject({ outcome: 'ok', sentBytes: bytes.length })
    expect(readFileSync(join(target, 'big')).equals(bytes)).toBe(true)
  })

  it('changes nothing in a dry run, and says what it would do', async () => {
    writeFileSync(join(source, 'a'), 'a')
    const target = join(directory, 'target')
    const { events } = await copy([local], [source], () => target, { isDryRun: true })
    expect(events).toContainEqual(expect.objectContaining({ action: 'would-copy', path: `${target}/a` }))
    expect(readdirSync(directory)).toEqual(['source'])
  })

  it('says in a dry run what it would do with symbolic links', async () => {
    const target = join(directory, 'target')
    for (const name of ['same', 'other', 'new', 'in-place']) symlinkSync('to', join(source, name))
    mkdirSync(join(target, 'in-place'), { recursive: true })
    symlinkSync('to', join(target, 'same'))
    symlinkSync('elsewhere', join(target, 'other'))
    const actionsOf = (events: readonly CopyEvent[]) =>
      events.flatMap((event) => (event.type === 'file' ? [`${basename(event.path)} ${event.action}`] : [])).sort()
    const dry = await copy([local], [`${source}/.`], () => target, { isDryRun: true })
    expect(actionsOf(dry.events)).toEqual(['in-place failed', 'new would-copy', 'other would-copy', 'same identical'])
    expect(readlinkSync(join(target, 'other'))).toBe('elsewhere')
    const { events } = await copy([local], [`${source}/.`], () => target)
    expect(actionsOf(events)).toEqual(['in-place failed', 'new copied', 'other copied', 'same identical'])
  })

  const fetch = async (
    endpoints: readonly Endpoint[],
    sources: readonly string[],
    into: string,
    options: CopyOptions = {},
  ) => {
    const events: CopyEvent[] = []
    const results = new Map<string, HostResult>()
    await fetchFromHosts(
      endpoints,
      {
        sourcesOf: () => sources,
        directory: into,
        isDryRun: options.isDryRun ?? false,
        keepsSpecialBits: options.keepsSpecialBits ?? false,
      },
      wires(events, results, options),
    )
    return { events, result: (host: string) => results.get(host)! }
  }

  it("fetches a tree from every host into a directory with the host's name, and nothing the second time", async () => {
    for (const name of ['plain', '-n', 'new\nline', '\n', "it's", ' ']) writeFileSync(join(source, name), `of ${name}`)
    writeFileSync(Buffer.concat([Buffer.from(`${source}/bad`), Buffer.from([0xff, 0xfe])]), 'not UTF-8')
    mkdirSync(join(source, 'void'))
    mkdirSync(join(source, 'inner'), { mode: 0o710 })
    writeFileSync(join(source, 'inner', 'big'), randomBytes(9_000_001), { mode: 0o640 })
    writeFileSync(join(source, 'holes'), 'begin')
    truncateSync(join(source, 'holes'), 8 * 1024 * 1024)
    symlinkSync('to\nnowhere\n', join(source, 'dangling'))
    // Node sets microseconds; a file system may have nanoseconds.
    for (const [name] of listing(source)) {
      lutimesSync(Buffer.from(`${source}${name}`, 'latin1'), 1_000_000_000.5, 1_000_000_000.5)
    }
    const out = join(directory, 'out')
    const first = await fetch(embeddedEndpoints(embedded), [source], out)
    for (const { name } of embedded.hosts) {
      expect(first.result(name)).toMatchObject({ outcome: 'ok', failed: 0 })
      expect(listing(join(out, name, 'source'))).toEqual(listing(source))
      expect(statSync(join(out, name, 'source', 'holes')).blocks * 512).toBeLessThan(1024 * 1024)
    }
    const second = await fetch(embeddedEndpoints(embedded), [source], out)
    for (const { name } of embedded.hosts) expect(second.result(name)).toMatchObject({ copied: 0, sentBytes: 0 })
  })

  it('fetches what exists, and reports what does not', async () => {
    writeFileSync(join(source, 'a'), 'a')
    const out = join(directory, 'out')
    const { events, result } = await fetch([local], [join(source, 'none'), join(source, 'a')], out)
    expect(result('here')).toMatchObject({ outcome: 'failed', copied: 1, failed: 1 })
    expect(events).toContainEqual(
      expect.objectContaining({ path: join(source, 'none'), reason: 'No such file or directory' }),
    )
    expect(readFileSync(join(out, 'here', 'a'), 'utf8')).toBe('a')
  })

  it('reports a link that leads nowhere once, and why', async () => {
    symlinkSync('/none/of these', join(source, 'dangling'))
    symlinkSync('/none', join(source, 'near'))
    symlinkSync('loop', join(source, 'loop'))
    const links = ['dangling', 'near', 'loop'].map((name) => join(source, name))
    const { events, result } = await fetch([local], links, join(directory, 'out'))
    expect(result('here')).toMatchObject({ outcome: 'failed', copied: 0, failed: 3 })
    const none = 'the link cannot be followed (No such file or directory)'
    const reasons = [none, none, none.replace('No such file or directory', 'Too many levels of symbolic links')]
    expect(events.filter(({ type }) => type === 'file')).toMatchObject(
      links.map((path, index) => ({ path, reason: reasons[index] })),
    )
  })

  it('never writes through a link that it fetched before', async () => {
    const out = join(directory, 'out')
    mkdirSync(join(directory, 'mine'))
    mkdirSync(join(out, 'here', 'source'), { recursive: true })
    symlinkSync(join(directory, 'mine'), join(out, 'here', 'source', 'sub'))
    mkdirSync(join(source, 'sub'))
    writeFileSync(join(source, 'sub', 'evil'), 'evil')
    mkdirSync(join(source, 'file'))
    writeFileSync(join(out, 'here', 'source', 'file'), '')
    const { events, result } = await fetch([local], [source], out)
    expect(result('here')).toMatchObject({ outcome: 'failed', copied: 0, failed: 2 })
    expect(events.flatMap((event) => ('reason' in event ? [event.reason] : [])).sort()).toEqual([
      'File exists (on this machine)',
      'Is a link here and a directory on the host: remove the link (on this machine)',
    ])
    expect(readdirSync(join(directory, 'mine'))).toEqual([])
  })

  it.skipIf(process.getuid?.() !== 0).each(['.', 'file'])(
    'goes through a link in place of the directory of a host only if it is the own account’s: %s',
    async (name) => {
      const out = join(directory, 'out')
      mkdirSync(join(directory, 'elsewhere'))
      mkdirSync(out)
      symlinkSync(join(directory, 'elsewhere'), join(out, 'here'))
      writeFileSync(join(source, 'file'), 'new')
      const own = await fetch([local], [`${source}/${name}`], out)
      expect(own.result('here')).toMatchObject({ outcome: 'ok', copied: 1 })
      rmSync(join(directory, 'elsewhere/file'))
      lchownSync(join(out, 'here'), 65_534, 65_534)
      for (const isDryRun of [true, false]) {
        const { result } = await fetch([local], [`${source}/${name}`], out, { isDryRun })
        expect(result('here')).toMatchObject({
          outcome: 'failed',
          reason: expect.stringContaining('it is a link that belongs to user 65534, not to you (0). Remove it'),
        })
      }
      expect(readdirSync(join(directory, 'elsewhere'))).toEqual([])
    },
  )

  it('resumes an interrupted fetch', async () => {
    const bytes = randomBytes(24_000_000)
    writeFileSync(join(source, 'big'), bytes)
    const out = join(directory, 'out')
    const endpoint = embeddedEndpoints(embedded)[0]!
    const cut = new AbortController()
    let arrived = 0
    await fetch([endpoint], [join(source, 'big')], out, {
      signal: cut.signal,
      onEvent: (event) => {
        if (event.type === 'progress') arrived += event.bytes
        if (arrived > 8_000_000) cut.abort()
      },
    })
    const [leftOver = ''] = readdirSync(join(out, 'm1'))
    expect(leftOver).toMatch(/^\.muster-/)
    // As if the process that left it had ended.
    const ended = spawnSync('true').pid
    renameSync(join(out, 'm1', leftOver), join(out, 'm1', leftOver.replace(/\d+$/, String(ended))))
    const second = await fetch([endpoint], [join(source, 'big')], out)
    expect(second.result('m1').sentBytes).toBeLessThan(bytes.length - 4_000_000)
    expect(readdirSync(join(out, 'm1'))).toEqual(['big'])
    expect(readFileSync(join(out, 'm1', 'big')).equals(bytes)).toBe(true)
  })

  it.each([
    5_000_000, 99_999_999_999_999,
  ])('fetches nothing of a file of 4 bytes that is listed with %i', async (size) => {
    writeFileSync(join(source, 'short'), 'four')
    const programs = join(directory, 'programs')
    mkdirSync(programs)
    const stat = execFileSync('sh', ['-c', 'command -v stat'], { encoding: 'utf8' }).trim()
    writeProgram(join(programs, 'stat'), `${stat} "$@" | sed 's/^\\(81[0-9a-f]*\\):4:/\\1:${size}:/'`)
    const out = join(directory, 'out')
    const { events, result } = await fetch([local], [source], out, { transport: withPrograms(programs) })
    expect(result('here')).toMatchObject({ outcome: 'failed', copied: 0, failed: 1, sentBytes: 0 })
    const reason = expect.stringMatching(
      /short: the file is shorter than it was listed, it may have changed meanwhile$/,
    )
    expect(events).toContainEqual(expect.objectContaining({ type: 'file', sizeBytes: size, reason }))
    expect(readdirSync(join(out, 'here', 'source'))).toEqual([])
  })

  it('fetches of a file that grows what it had when it was listed, and nothing of one that is written anew', async () => {
    const bytes = randomBytes(9_000_000)
    const file = join(source, 'log')
    const out = join(directory, 'out')
    const fetchWhile = async (change: () => void) => {
      writeFileSync(file, bytes)
      const onEvent = ({ type }: CopyEvent) => type === 'progress' && change()
      return (await fetch([local], [file], out, { onEvent })).result('here')
    }
    expect(await fetchWhile(() => appendFileSync(file, 'one line more\n'))).toMatchObject({ copied: 1, failed: 0 })
    expect(readFileSync(join(out, 'here', 'log')).equals(bytes)).toBe(true)
    rmSync(out, { recursive: true })
    expect(await fetchWhile(() => writeFileSync(file, randomBytes(9_000_000)))).toMatchObject({ copied: 0, failed: 1 })
    expect(readdirSync(join(out, 'here'))).toEqual([])
  })

  it('stops at the first read behind the end of a file that shrinks', async () => {
    const big = join(source, 'big')
    writeFileSync(big, '')
    truncateSync(big, 400_000_000)
    const { events, result } = await fetch([local], [big], join(directory, 'out'), {
      onEvent: (event) => {
        if (event.type === 'progress') truncateSync(big, 1000)
      },
    })
    expect(result('here')).toMatchObject({ outcome: 'failed', copied: 0, failed: 1 })
    expect(result('here').sentBytes).toBeLessThan(40_000_000)
    expect(events).toContainEqual(expect.objectContaining({ reason: expect.stringMatching(/is shorter than it was/) }))
  })

  it('removes partial files that nobody resumed for a week from the directories that it fetches into', async () => {
    writeFileSync(join(source, 'a'), 'a')
    const out = join(directory, 'out')
    const target = join(out, 'here', 'source')
    mkdirSync(target, { recursive: true })
    const { kept } = leavePartials(target)
    expect((await fetch([local], [source], out)).result('here')).toMatchObject({ copied: 1 })
    expect(readdirSync(target).sort()).toEqual([...kept, 'a'].sort())
  })

  it('refuses in advance to fetch two files that would become the same one', async () => {
    for (const [name, size] of [
      ['a', 9_000_000],
      ['b', 30_000_000],
    ] as const) {
      mkdirSync(join(source, name))
      writeFileSync(join(source, name, 'x'), randomBytes(size))
    }
    const out = join(directory, 'out')
    const { result } = await fetch(embeddedEndpoints(embedded), [join(source, 'a', 'x'), join(source, 'b', 'x')], out)
    for (const { name } of embedded.hosts) {
      const reason = `${source}/a/x and ${source}/b/x would both become ${out}/${name}/x. Fetch each into a separate directory.`
      expect(result(name)).toMatchObject({ outcome: 'failed', reason, copied: 0 })
    }
    expect(readdirSync(directory)).toEqual(['source'])
  })

  it('refuses a listing that contains a name twice', async () => {
    writeFileSync(join(source, 'x'), 'x')
    const programs = join(directory, 'programs')
    mkdirSync(programs)
    const find = execFileSync('sh', ['-c', 'command -v find'], { encoding: 'utf8' }).trim()
    // Every path is looked at twice.
    writeProgram(join(programs, 'find'), `p=$1; shift\nexec ${find} "$p" "$p" "$@"`)
    const { result } = await fetch([local], [source], join(directory, 'out'), { transport: withPrograms(programs) })
    const reason = expect.stringMatching(/^\S+\/x is listed twice/)
    expect(result('here')).toMatchObject({ outcome: 'failed', reason })
    expect(readdirSync(directory)).not.toContain('out')
  })

  it.each([
    // As find does it: many names for each shell.
    [
      'names',
      'name=$(printf %04000d 0); set -- "$4" "$5" "$6" $(yes $name | head -n 300)\nwhile :; do sh -c "$@"; done',
    ],
    ['complaints', 'exec yes "find: broken: Input/output error" >&2'],
  ])('ends a listing with endless %s, on the host too, and stores no more of it than a fetch takes', async (_, program) => {
    const programs = join(directory, 'programs')
    writeProgram(join(programs, 'find'), `echo $$ >>"$0.pids"\n${program}`)
    const { events } = await fetch([local], [source], join(directory, 'out'), { transport: withPrograms(programs) })
    const reason = 'too many files to list, fetch parts of it'
    expect(events).toContainEqual(expect.objectContaining({ action: 'failed', path: source, reason }))
    // Once: not again in each place for temporary files.
    const pids = readFileSync(join(programs, 'find.pids'), 'utf8').trim().split('\n')
    expect(pids).toHaveLength(1)
    expect(() => process.kill(Number(pids[0]), 0)).toThrow('ESRCH')
  })

  it('makes a listing in no directory where another account can replace it', async () => {
    writeFileSync(join(source, 'a'), 'a')
    const [programs, temporary] = [join(directory, 'programs'), join(directory, 'temporary')]
    mkdirSync(temporary)
    chmodSync(temporary, 0o777)
    writeProgram(join(programs, 'mktemp'), `echo "$2" >>"$0.places"; PATH=\${PATH#*:}; exec mktemp "$@"`)
    const fetchWith = async (place: string, name: string) =>
      (
        await fetch([local], [source], join(directory, name), {
          transport: withPrograms(programs, `TMPDIR='${place}'; export TMPDIR;`),
        })
      ).result('here')
    expect(await fetchWith(temporary, 'out')).toMatchObject({ outcome: 'ok', copied: 1 })
    expect(await fetchWith(directory, 'again')).toMatchObject({ outcome: 'ok', copied: 1 })
    const places = readFileSync(join(programs, 'mktemp.places'), 'utf8')
    expect(places).not.toContain(temporary)
    expect(places).toContain(`${directory}/muster.XXXXXX\n`)
  })

  it('takes no more names and complaints than it has memory for, however short they are', async () => {
    const programs = join(directory, 'programs')
    mkdirSync(programs)
    const answer = (names: number, complaints: number) => {
      const lines = [
        `yes "find: x: Input/output error" | head -n ${complaints} >&2`,
        `yes n | head -n ${names} | tr '\\n' '\\0'; printf '\\0\\0'`,
      ]
      writeProgram(join(programs, 'find'), lines.join('\n'))
    }
    const failed = async () => {
      const { events } = await fetch([local], [source], join(directory, 'out'), { transport: withPrograms(programs) })
      return events.flatMap((event) => (event.type === 'file' && event.action === 'failed' ? [event.reason] : []))
    }
    answer(Math.ceil(getHeapStatistics().heap_size_limit / 3 / 1024), 1)
    expect(await failed()).toEqual(['too many files to list, fetch parts of it'])
    answer(5000, 5000)
    const reasons = await failed()
    expect(reasons).toHaveLength(2001)
    expect(reasons.at(-1)).toBe('more of its files cannot be read')
  })

  it('gives two fetches of one process to the same place separate partial files', async () => {
    const bytes = randomBytes(6_000_000)
    writeFileSync(join(source, 'x'), bytes)
    const out = join(directory, 'out')
    const both = await Promise.all([1, 2].map(() => fetch([local], [join(source, 'x')], out)))
    for (const { result } of both) expect(result('here')).toMatchObject({ outcome: 'ok' })
    expect(readFileSync(join(out, 'here', 'x')).equals(bytes)).toBe(true)
    expect(readdirSync(join(out, 'here'))).toEqual(['x'])
  })

  it('verifies the file on the disk, not the bytes that it received', async () => {
    writeFileSync(join(source, 'x'), randomBytes(6_000_000))
    const out = join(directory, 'out')
    const { result, events } = await fetch([local], [join(source, 'x')], out, {
      onEvent: ({ type }) => {
        if (type !== 'progress') return
        // Somebody writes into the file while it arrives.
        for (const name of readdirSync(join(out, 'here'))) {
          if (!name.startsWith('.muster')) continue
          const handle = openSync(join(out, 'here', name), 'r+')
          writeSync(handle, 'other bytes', 0)
          closeSync(handle)
        }
      },
    })
    expect(result('here')).toMatchObject({ outcome: 'failed', copied: 0, failed: 1 })
    const reason = expect.stringContaining('the checksum')
    expect(events).toContainEqual(expect.objectContaining({ action: 'failed', reason }))
    expect(readdirSync(join(out, 'here'))).toEqual([])
  })

  describe('set-id and sticky bits', () => {
    /** Many of them, so that helpers bring them where there are any; and one of somebody else. */
    const makeSpecial = () => {
      const names = Array.from({ length: 10 }, (_, index) => `f${index}`)
      for (const name of names) writeFileSync(join(source, name), name)
      writeFileSync(join(source, 'large'), randomBytes(200_000))
      mkdirSync(join(source, 'd'))
      for (const name of [...names, 'large', 'd']) chmodSync(join(source, name), 0o7755)
      if (process.geteuid?.() === 0) {
        for (const name of ['f0', 'large']) {
          chownSync(join(source, name), 4711, 4711)
          chmodSync(join(source, name), 0o7755)
        }
      }
      return process.geteuid?.() === 0 ? ['f0', 'large'] : []
    }
    const modesIn = (target: string) =>
      Object.fromEntries(readdirSync(target).map((name) => [name, statSync(join(target, name)).mode & 0o7777]))
    const allOf = (target: string, mode: number) => Object.fromEntries(readdirSync(target).map((name) => [name, mode]))

    it.each([true, false])('do not survive a copy (with a helper: %s)', async (hasHelpers) => {
      makeSpecial()
      const target = join(directory, 'target')
      for (const _ of ['new', 'identical']) {
        const { result } = await copy([local], [`${source}/.`], () => target, { hasHelpers })
        expect(result('here')).toMatchObject({ outcome: 'ok' })
        expect(modesIn(target)).toEqual(allOf(source, 0o755))
        for (const name of readdirSync(target)) if (name !== 'd') chmodSync(join(target, name), 0o6755)
      }
    })

    it.each([true, false])('survive if requested and the owner is the same (with a helper: %s)', async (hasHelpers) => {
      const others = makeSpecial()
      const target = join(directory, 'target')
      await copy([local], [`${source}/.`], () => target, { hasHelpers, keepsSpecialBits: true })
      expect(modesIn(target)).toEqual({
        ...allOf(source, 0o7755),
        ...Object.fromEntries(others.map((name) => [name, 0o755])),
      })
    })

    it('do not survive a fetch, unless requested and the owner is the same', async () => {
      const others = makeSpecial()
      const out = join(directory, 'out')
      const target = join(out, 'here', 'source')
      await fetch([local], [source], out)
      expect(modesIn(target)).toEqual(allOf(source, 0o755))
      await fetch([local], [source], join(directory, 'asked'), { keepsSpecialBits: true })
      expect(modesIn(join(directory, 'asked', 'here', 'source'))).toEqual({
        ...allOf(source, 0o7755),
        ...Object.fromEntries(others.map((name) => [name, 0o755])),
      })
    })

    it.each([true, false])('of an existing directory are kept (with a helper: %s)', async (hasHelpers) => {
      mkdirSync(join(source, 'd'))
      chmodSync(join(source, 'd'), 0o750)
      for (let index = 0; index < 10; index += 1) writeFileSync(join(source, 'd', `${index}`), 'x')
      const [target, out] = [join(directory, 'target'), join(directory, 'out')]
      const places = [join(target, 'd'), join(out, 'here', 'd')]
      for (const place of places) {
        mkdirSync(place, { recursive: true })
        chmodSync(place, 0o3077)
      }
      await copy([local], [join(source, 'd')], () => target, { hasHelpers })
      await fetch([local], [join(source, 'd')], out)
      for (const place of places) expect([place, statSync(place).mode & 0o7777]).toEqual([place, 0o3750])
    })
  })

  it.each([
    1000, 2_000_000,
  ])('does not write through a link at the path of an earlier partial file (%s bytes)', async (size) => {
    const bytes = randomBytes(size)
    bytes.writeUInt8(0)
    writeFileSync(join(source, 'x'), size > 2048 ? bytes : bytes.toString('hex'))
    const target = join(directory, 'target')
    mkdirSync(target)
    const victim = join(directory, 'victim')
    writeFileSync(victim, 'of somebody else')
    symlinkSync(victim, join(target, `${partialOf('x')}.${hostname()}.${spawnSync('true').pid}`))
    const { result } = await copy([local], [join(source, 'x')], () => target)
    expect(result('here')).toMatchObject({ outcome: 'ok' })
    expect(readFileSync(victim, 'utf8')).toBe('of somebody else')
    expect(lstatSync(join(target, 'x')).isFile()).toBe(true)
    expect(readFileSync(join(target, 'x')).equals(readFileSync(join(source, 'x')))).toBe(true)
  })

  it('never runs the bytes of a file, even if the program that reads them is killed', async () => {
    const line = `touch ${join(directory, 'run')}\n`
    writeFileSync(join(source, 'x'), line.repeat(20_000))
    const programs = join(directory, 'programs')
    mkdirSync(programs)
    const head = execFileSync('sh', ['-c', 'command -v head'], { encoding: 'utf8' }).trim()
    // As if the system had killed it for memory.
    writeProgram(join(programs, 'head'), `[ "$2" -lt 1000 ] && exec ${head} "$@"\nkill -9 $$`)
    const { result } = await copy([local], [join(source, 'x')], () => join(directory, 'target'), {
      transport: withPrograms(programs),
    })
    expect(result('here')).toMatchObject({ outcome: expect.stringMatching(/^(failed|unreachable)$/), copied: 0 })
    expect(readdirSync(directory)).not.toContain('run')
  })

  it("creates the destination with the user's umask", async () => {
    writeFileSync(join(source, 'x'), 'x')
    const target = join(directory, 'new', 'target')
    await copy([local], [join(source, 'x')], () => `${target}/`)
    for (const made of [join(directory, 'new'), target])
      expect(statSync(made).mode & 0o777).toBe(0o777 & ~process.umask())
  })

  it('blames no host of a chain that is cancelled', async () => {
    writeFileSync(join(source, 'big'), randomBytes(48_000_000))
    const cancel = new AbortController()
    const paths: string[] = []
    await copy(embeddedEndpoints(embedded), [join(source, 'big')], (host) => join(directory, host), {
      via: 'chain',
      signal: cancel.signal,
      onPath: ({ via }) => {
        paths.push(via)
        cancel.abort()
      },
    })
    expect(paths).toEqual(['chain'])
  })

  it('never shows half a file under its final name, whenever it is interrupted', async () => {
    const random = seededRandom()
    const endpoint = embeddedEndpoints(embedded)[0]!
    const contents = new Map(Array.from({ length: 6 }, (_, index) => [`f${index}`, randomBytes(700_000 * index)]))
    for (const [name, bytes] of contents) writeFileSync(join(source, name), bytes)
    const total = [...contents.values()].reduce((sum, bytes) => sum + bytes.length, 0)
    const rounds = Number(process.env.MUSTER_ROUNDS ?? 6)
    for (let round = 0; round < rounds; round += 1) {
      const target = join(directory, `round${round}`)
      for (let part = 0.1; ; part += 0.3) {
        const cut = new AbortController()
        const limit = total * (part + random() * 0.3)
        let arrived = 0
        const { result } = await copy([endpoint], [`${source}/.`], () => target, {
          signal: cut.signal,
          onEvent: (event) => {
            if (event.type === 'progress') arrived += event.bytes
            if (arrived > limit) cut.abort()
          },
        })
        const isDone = result('m1').outcome === 'ok'
        for (const name of readdirSync(target)) {
          const bytes = contents.get(name)
          if (bytes === undefined)
            expect({ name, isDone }).toMatchObject({ name: expect.stringMatching(/^\.muster-/), isDone: false })
          else expect(readFileSync(join(target, name)).equals(bytes)).toBe(true)
        }
        if (isDone) break
      }
      expect(readdirSync(target).sort()).toEqual([...contents.keys()])
    }
  })
})

/** Names, kinds, modes, times and contents of everything below. */
function listing(root: string): [name: string, ...unknown[]][] {
  const entries: [string, ...unknown[]][] = []
  const visit = (directory: Buffer) => {
    for (const name of readdirSync(directory, { encoding: 'buffer' })) {
      const path = Buffer.concat([directory, Buffer.from('/'), name])
      const facts = lstatSync(path)
      const contents = facts.isFile() ? readFileSync(path, 'latin1') : facts.isSymbolicLink() ? readlinkSync(path) : ''
      entries.push([path.toString('latin1').slice(root.length), facts.mode, facts.mtimeMs, contents])
      if (facts.isDirectory()) visit(path)
    }
  }
  visit(Buffer.from(root))
  return entries.sort(([a], [b]) => (a < b ? -1 : 1))
}
