import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Endpoint } from '../../../../src/inventory/host.ts'
import { fingerprintOf } from '../../../../src/inventory/known-hosts/parse.ts'
import { createHostKeyVerifier } from '../../../../src/ssh/known-hosts/verifier.ts'
import type { HostKeyReviewer, NewHostKey } from '../../../../src/ssh/questions.ts'
import { endpointOf } from '../../../support/endpoint.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { blobOf } from '../../inventory/known-hosts/key-blobs.ts'
import { ManualClock } from '../manual-clock.ts'

const KEY = blobOf('ssh-ed25519')
const LIVE = new AbortController().signal

class Person implements HostKeyReviewer {
  readonly reviews: (readonly NewHostKey[])[] = []
  readonly signals: AbortSignal[] = []
  readonly #answers: ((hosts: ReadonlySet<string>) => void)[] = []

  review(keys: readonly NewHostKey[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    this.reviews.push(keys)
    this.signals.push(signal)
    return new Promise((resolve) => this.#answers.push(resolve))
  }

  accepts(...hosts: string[]): void {
    this.#answers.shift()?.(new Set(hosts))
  }
}

describe('the host key verifier', () => {
  let directory: string
  let file: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-verifier-'))
    file = join(directory, 'known_hosts')
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const endpoint = (host: string, changes: Partial<Endpoint> = {}) =>
    endpointOf(host, { knownHostsFiles: [file], ...changes })
  const lines = () => readFileSync(file, 'utf8').trim().split('\n')

  it('refuses an unknown key if checking is strict, with its fingerprint and what to do', async () => {
    const verdict = await createHostKeyVerifier().verify(endpoint('m8', { strictHostKeyChecking: 'yes' }), KEY, LIVE)
    expect(verdict).toMatchObject({ ok: false })
    expect(verdict).toHaveProperty('reason', expect.stringContaining(fingerprintOf(KEY)))
    expect(verdict).toHaveProperty('hint', expect.stringContaining('StrictHostKeyChecking=ask'))
  })

  it('accepts and records a new key under accept-new, and knows it from then on', async () => {
    const verifier = createHostKeyVerifier()
    expect(await verifier.verify(endpoint('m8', { strictHostKeyChecking: 'accept-new' }), KEY, LIVE)).toEqual({
      ok: true,
    })
    expect(await verifier.verify(endpoint('m8', { strictHostKeyChecking: 'yes' }), KEY, LIVE)).toEqual({ ok: true })
    expect(lines()).toHaveLength(1)
  })

  it('hashes names in what it records if HashKnownHosts says so', async () => {
    await createHostKeyVerifier().verify(
      endpoint('m8', { strictHostKeyChecking: 'accept-new', hashKnownHosts: true }),
      KEY,
      LIVE,
    )
    expect(lines()[0]).toMatch(/^\|1\|/)
  })

  it('refuses a changed key whatever the checking, with both fingerprints, the line and the command', async () => {
    const verifier = createHostKeyVerifier()
    await verifier.verify(endpoint('m8', { strictHostKeyChecking: 'accept-new' }), KEY, LIVE)
    const other = blobOf('ssh-ed25519', 1)
    for (const strictHostKeyChecking of ['yes', 'ask', 'accept-new', 'no'] as const) {
      const verdict = await verifier.verify(endpoint('m8', { strictHostKeyChecking }), other, LIVE)
      if (verdict.ok) throw new Error('it was accepted')
      expect(verdict.reason).toContain(fingerprintOf(KEY))
      expect(verdict.reason).toContain(fingerprintOf(other))
      expect(verdict.reason).toContain(`${file}:1`)
      expect(verdict.hint).toContain(`ssh-keygen -f ${file} -R m8.test`)
    }
    expect(lines()).toHaveLength(1)
  })

  it('fails on an unreadable known_hosts file instead of treating the host as unknown', async () => {
    mkdirSync(file)
    const verifier = createHostKeyVerifier()
    await expect(verifier.verify(endpoint('m8', { strictHostKeyChecking: 'no' }), KEY, LIVE)).rejects.toMatchObject({
      code: 'configuration',
    })
    await expect(verifier.preferredAlgorithms(endpoint('m8'))).rejects.toMatchObject({ code: 'configuration' })
  })

  it('refuses what it cannot ask about, with the commands that add the key', async () => {
    const noTerminal: HostKeyReviewer = { review: async () => undefined }
    for (const options of [{}, { reviewer: noTerminal }]) {
      const verdict = await createHostKeyVerifier(options).verify(endpoint('m8', { port: 2201 }), KEY, LIVE)
      expect(verdict).toMatchObject({
        ok: false,
        reason: expect.stringContaining('there is no terminal to ask on'),
        hint: `Compare the fingerprint with the machine's own, then run \`ssh-keyscan -t ed25519 -p 2201 m8.test >> ${file}\`; or \`muster hosts m8 --check\` in a terminal asks about it.`,
      })
    }
    const behind = endpoint('m8', { jump: [endpoint('m9')] })
    expect(await createHostKeyVerifier().verify(behind, KEY, LIVE)).toHaveProperty(
      'hint',
      "Compare the fingerprint with the machine's own: `muster hosts m8 --check` in a terminal asks about it.",
    )
    const unnamed = endpoint('10.0.0.8', { address: '10.0.0.8', port: 2201 })
    expect(await createHostKeyVerifier().verify(unnamed, KEY, LIVE)).toHaveProperty(
      'hint',
      expect.stringContaining('`muster hosts 10.0.0.8:2201 --check` in a terminal'),
    )
  })

  it('shows all new keys of one moment in one review, and records the accepted ones', async () => {
    const person = new Person()
    const clock = new ManualClock()
    const verifier = createHostKeyVerifier({ reviewer: person, clock })
    const verdicts = ['m8', 'm9', 'm10'].map((host, seed) =>
      verifier.verify(endpoint(host), blobOf('ssh-ed25519', seed), LIVE),
    )
    await waitUntil(() => clock.timerCount > 0, 'the keys to wait')
    await waitUntil(() => {
      // Slowly: each key is looked up in files first.
      clock.advance(10)
      return person.reviews.length > 0
    }, 'the review')
    expect(person.reviews[0]?.map(({ host }) => host).toSorted()).toEqual(['m10', 'm8', 'm9'])
    expect(person.reviews[0]?.find(({ host }) => host === 'm8')).toEqual({
      host: 'm8',
      lookupName: 'm8.test',
      algorithm: 'ssh-ed25519',
      fingerprint: fingerprintOf(KEY),
    })
    person.accepts('m8', 'm10')
    expect((await Promise.all(verdicts)).map(({ ok }) => ok)).toEqual([true, false, true])
    expect(lines()).toHaveLength(2)
  })

  it('shows keys that came during a review in the next one', async () => {
    const person = new Person()
    const clock = new ManualClock()
    const verifier = createHostKeyVerifier({ reviewer: person, clock })
    const reviewNumber = (count: number) =>
      waitUntil(() => {
        clock.advance(250)
        return person.reviews.length === count
      }, `review ${count}`)
    const first = verifier.verify(endpoint('m8'), KEY, LIVE)
    await reviewNumber(1)
    const second = verifier.verify(endpoint('m9'), KEY, LIVE)
    person.accepts('m8')
    expect(await first).toEqual({ ok: true })
    await reviewNumber(2)
    expect(person.reviews[1]?.map(({ host }) => host)).toEqual(['m9'])
    person.accepts('m9')
    expect(await second).toEqual({ ok: true })
  })

  it('asks once about a key, also when its host connects again before the answer', async () => {
    const person = new Person()
    const clock = new ManualClock()
    const verifier = createHostKeyVerifier({ reviewer: person, clock })
    const first = ['m8', 'm9'].map((host) => verifier.verify(endpoint(host), KEY, LIVE))
    await waitUntil(() => {
      clock.advance(10)
      return person.reviews.length === 1
    }, 'the review')
    // The server has closed these connections meanwhile: nobody waited that long.
    const second = ['m8', 'm9'].map((host) => verifier.verify(endpoint(host), KEY, LIVE))
    // They are asked about once known_hosts has been read; this reads it, too.
    for (let reads = 0; reads < 20; reads++) await verifier.preferredAlgorithms(endpoint('m8'))
    person.accepts('m8')
    const verdicts = await Promise.all([...first, ...second])
    expect(verdicts.map(({ ok }) => ok)).toEqual([true, false, true, false])
    clock.advance(5000)
    expect(person.reviews).toHaveLength(1)
    expect(lines()).toHaveLength(1)
  })

  it('closes a review that no host waits for any more', async () => {
    const person = new Person()
    const clock = new ManualClock()
    const abort = new AbortController()
    const verdict = createHostKeyVerifier({ reviewer: person, clock }).verify(endpoint('m8'), KEY, abort.signal)
    await waitUntil(() => {
      clock.advance(250)
      return person.reviews.length === 1
    }, 'the review')
    abort.abort()
    expect(await verdict).toMatchObject({ ok: false })
    expect(person.signals[0]?.aborted).toBe(true)
  })

  it('continues with an accepted key that cannot be recorded, and says so', async () => {
    const warnings: string[] = []
    writeFileSync(join(directory, 'in-the-way'), '')
    const verifier = createHostKeyVerifier({ onWarning: (message) => warnings.push(message) })
    const unwritable = endpoint('m8', {
      strictHostKeyChecking: 'accept-new',
      knownHostsFiles: [join(directory, 'in-the-way', 'known_hosts')],
    })
    expect(await verifier.verify(unwritable, KEY, LIVE)).toEqual({ ok: true })
    expect(warnings[0]).toContain('in-the-way')
  })

  it('remembers a new key that no file stores for this run, and refuses a different one', async () => {
    const verifier = createHostKeyVerifier()
    for (const strictHostKeyChecking of ['accept-new', 'ask', 'yes'] as const) {
      const host = (name: string) => endpoint(name, { strictHostKeyChecking, knownHostsFiles: ['/dev/null'] })
      if (strictHostKeyChecking === 'accept-new') {
        expect(await verifier.verify(host('m8'), KEY, LIVE)).toEqual({ ok: true })
      }
      expect(await verifier.verify(host('m8'), KEY, LIVE)).toEqual({ ok: true })
      const verdict = await verifier.verify(host('m8'), blobOf('ssh-ed25519', 1), LIVE)
      expect(verdict).toMatchObject({ ok: false, reason: expect.stringContaining('accepted earlier in this run') })
    }
  })

  it('remembers no unstored key if checking is off', async () => {
    const verifier = createHostKeyVerifier()
    const host = endpoint('m8', { strictHostKeyChecking: 'no', knownHostsFiles: ['/dev/null'] })
    for (const seed of [0, 1])
      expect(await verifier.verify(host, blobOf('ssh-ed25519', seed), LIVE)).toEqual({ ok: true })
  })

  it.each(['accept-new', 'no', 'ask'] as const)('accepts no new key without a file, with %s', async (checking) => {
    const person = new Person()
    const verifier = createHostKeyVerifier({ reviewer: person })
    const host = endpoint('m8', { strictHostKeyChecking: checking, knownHostsFiles: [] })
    const verdict = await verifier.verify(host, KEY, LIVE)
    expect(verdict).toMatchObject({ ok: false, reason: expect.stringContaining('UserKnownHostsFile none') })
    expect(person.reviews).toEqual([])
  })

  it('refuses a plain key if only an authority is trusted', async () => {
    writeFileSync(
      file,
      `@cert-authority *.test ssh-ed25519 ${Buffer.from(blobOf('ssh-ed25519', 9)).toString('base64')}\n`,
    )
    const verdict = await createHostKeyVerifier().verify(endpoint('m8', { strictHostKeyChecking: 'no' }), KEY, LIVE)
    expect(verdict).toMatchObject({ ok: false, hint: expect.stringContaining('transport: openssh') })
  })
})
