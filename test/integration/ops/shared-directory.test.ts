/** The check of a shared directory with the real scripts: hosts are shells of this machine, whose path leads to directories of their own. */
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { PROOF_FILE } from '../../../src/base/proof-file.ts'
import type { OpsHosts, ScriptResult } from '../../../src/ops/kernel/host-port.ts'
import { checkSharedDirectory } from '../../../src/ops/nfs/shared-directory.ts'
import { waitUntil } from '../../support/wait-until.ts'

let directory: string
let abort: AbortController
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-shared-'))
  for (const name of ['one', 'two']) mkdirSync(join(directory, name, 'results'), { recursive: true })
  abort = new AbortController()
})
afterEach(() => rmSync(directory, { recursive: true }))

/** Hosts that `hang` never answer, as with a server that is gone. */
const shells = (hang: readonly string[] = []): OpsHosts => ({
  async exec(host, script, { turn, signal, onOutput }): Promise<ScriptResult> {
    const child = spawn('sh', ['-c', hang.includes(host) ? 'read x' : script], { stdio: ['pipe', 'pipe', 'pipe'] })
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      onOutput?.('stdout', text)
    })
    const stop = () => child.kill('SIGTERM')
    signal.addEventListener('abort', stop)
    if (turn === undefined) child.stdin.end()
    else void turn.then(() => child.stdin.end('\n'))
    const { promise, resolve } = Promise.withResolvers<number | null>()
    child.once('close', resolve)
    const code = await promise
    signal.removeEventListener('abort', stop)
    const outcome = code === null ? { kind: 'cancelled' as const } : { kind: 'exit' as const, code }
    return { outcome, stdout: Buffer.from(stdout), stderr: new Uint8Array(), durationMs: 0 }
  },
})

const PATH = '/shared/results'
/** `places`: the directory that each host has at /shared. */
const check = async (places: Readonly<Record<string, string>>, path = PATH, hosts = shells()) => {
  const wrap = (host: string, script: string) =>
    script
      .replaceAll("='/shared", `='${join(directory, places[host] ?? '')}`)
      .replaceAll('=/shared', `=${join(directory, places[host] ?? '')}`)
  const findings = await checkSharedDirectory(path, Object.keys(places), {
    hosts,
    signal: abort.signal,
    shares: [],
    wrap,
  })
  return findings.map(({ host, id }) => `${host} ${id}`)
}
const left = () => (readdirSync(directory, { recursive: true }) as string[]).filter((name) => name.includes(PROOF_FILE))

it('finds one directory on all hosts, and leaves nothing there', async () => {
  expect(await check({ m1: 'one', m2: 'one', m3: 'one' })).toEqual([])
  expect(left()).toEqual([])
})

it('finds hosts that have another one', async () => {
  expect(await check({ m1: 'one', m2: 'two', m3: 'one' })).toEqual(['m2 directory-differs'])
  expect(left()).toEqual([])
})

it('uses the directory above one that no host has yet', async () => {
  expect(await check({ m1: 'one', m2: 'one' }, '/shared/new')).toEqual([])
  expect(await check({ m1: 'one', m2: 'two' }, '/shared/new')).toEqual(['m2 directory-differs'])
  expect(await check({ m1: 'one', m2: 'one' }, '/shared/a/b')).toEqual(['m1 directory-missing', 'm2 directory-missing'])
  mkdirSync(join(directory, 'one', 'new'))
  expect(await check({ m1: 'one', m2: 'two' }, '/shared/new')).toEqual(['m2 directory-differs'])
  expect(left()).toEqual([])
})

it('refuses a file, and a link that leads nowhere', async () => {
  writeFileSync(join(directory, 'one', 'file'), '')
  symlinkSync('/nowhere/at/all', join(directory, 'one', 'link'))
  expect(await check({ m1: 'one' }, '/shared/file')).toEqual(['m1 directory-missing'])
  expect(await check({ m1: 'one' }, '/shared/link')).toEqual(['m1 directory-missing'])
})

it('names a host that cannot write', async () => {
  // Not even root can.
  expect(await check({ m1: 'one' }, '/proc')).toEqual(['m1 directory-denied'])
})

it('names a host that does not answer, and still judges the others', async () => {
  const quick = shells(['m3'])
  const found = check({ m1: 'one', m2: 'one', m3: 'one' }, PATH, {
    exec: async (host, script, options) =>
      await quick.exec(
        host,
        script,
        host === 'm3' ? { ...options, signal: AbortSignal.any([options.signal, AbortSignal.timeout(200)]) } : options,
      ),
  })
  expect(await found).toEqual(['m3 directory-unknown'])
  expect(left()).toEqual([])
})

it('writes private files of a secret content, and removes them when it is stopped', async () => {
  const hosts = shells(['m2'])
  const found = check({ m1: 'one', m2: 'one' }, PATH, hosts)
  const file = () => join(directory, left()[0] ?? '')
  await waitUntil(() => left().length === 1 && statSync(file()).size === 24, 'the file with its text')
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  abort.abort()
  await found
  expect(left()).toEqual([])
})

it('removes what a killed check left long ago, and nothing else', async () => {
  const [old, fresh] = ['a', 'b'].map((name) => join(directory, 'one', 'results', `${PROOF_FILE}${name}`))
  for (const file of [old, fresh]) writeFileSync(file as string, '')
  utimesSync(old as string, 0, 0)
  await check({ m1: 'one' })
  expect(left()).toEqual([`one/results/${PROOF_FILE}b`])
})

it('reads the path as a name alone', async () => {
  const name = `it's "$(touch ${directory}/ran)" -n`
  mkdirSync(join(directory, 'one', name), { recursive: true })
  expect(await check({ m1: 'one', m2: 'one' }, `${directory}/one/${name}`)).toEqual([])
  expect(readdirSync(directory)).not.toContain('ran')
})
