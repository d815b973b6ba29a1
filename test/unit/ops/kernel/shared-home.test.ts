/** Which hosts share a home: proved by files that they see of each other, whatever a host claims. */
import { describe, expect, it } from 'vitest'
import type { OpsHosts, ScriptOptions, ScriptResult } from '../../../../src/ops/kernel/host-port.ts'
import { findSharedHomes, homeFact } from '../../../../src/ops/kernel/shared-home.ts'

const NONE = new Uint8Array()

/** Each host has the home of that name; a liar says that it sees everything, a mute one never says anything. */
class Homes implements OpsHosts {
  readonly files = new Map<string, Set<string>>()
  readonly scripts: string[] = []
  readonly #homes: Readonly<Record<string, string>>
  readonly #liars: readonly string[]

  constructor(homes: Readonly<Record<string, string>>, liars: readonly string[] = []) {
    this.#homes = homes
    this.#liars = liars
    for (const home of Object.values(homes)) this.files.set(home, new Set())
  }

  async exec(host: string, script: string, { turn, onOutput }: ScriptOptions): Promise<ScriptResult> {
    this.scripts.push(`${host} ${script}`)
    const files = this.files.get(this.#homes[host] ?? '') ?? new Set()
    const end = (stdout: string): ScriptResult => ({
      outcome: { kind: 'exit', code: 0 },
      stdout: Buffer.from(stdout),
      stderr: NONE,
      durationMs: 0,
    })
    if (turn !== undefined) {
      const nonce = /^prove "\$HOME" (\w+)/m.exec(script)?.[1] ?? ''
      await new Promise((resolve) => setImmediate(resolve))
      files.add(nonce)
      onOutput?.('stdout', 'written\n')
      await turn
      files.delete(nonce)
      return end('')
    }
    const asked = /^proofs "\$HOME" (.*)/m.exec(script)?.[1]?.split(' ') ?? []
    return end(asked.filter((nonce) => this.#liars.includes(host) || files.has(nonce)).join('\n'))
  }
}

async function share(hosts: Homes, inodes: Readonly<Record<string, string>>): Promise<readonly (readonly string[])[]> {
  let count = 0
  const newName = () => {
    count += 1
    return `n${count}`
  }
  const homes = new Map(Object.entries(inodes).map(([host, inode]) => [host, { inode, path: '/home/ada' }]))
  const { signal } = new AbortController()
  const found = await findSharedHomes(homes, { hosts, signal, newName })
  return found.map(({ hosts: names }) => names)
}

describe('hosts share a home', () => {
  it('if each sees what the others wrote, of which nothing stays', async () => {
    const hosts = new Homes({ m1: 'a', m2: 'a', m3: 'b', m4: 'b', m5: 'c' })
    expect(await share(hosts, { m1: '7', m2: '7', m3: '7', m4: '7', m5: '7' })).toEqual([
      ['m1', 'm2'],
      ['m3', 'm4'],
    ])
    expect([...hosts.files.values()].every(({ size }) => size === 0)).toBe(true)
  })

  it('and are not asked if their homes cannot be the same', async () => {
    const hosts = new Homes({ m1: 'a', m2: 'a' })
    expect(await share(hosts, { m1: '7', m2: '8' })).toEqual([])
    expect(hosts.scripts).toEqual([])
  })

  it('but not with a host that falsely claims to see their files', async () => {
    const hosts = new Homes({ m1: 'a', m2: 'b', m3: 'c', m4: 'a' }, ['m2', 'm3'])
    expect(await share(hosts, { m1: '7', m2: '7', m3: '7', m4: '7' })).toEqual([
      ['m1', 'm4'],
      ['m2', 'm3'],
    ])
  })

  it('but not with a host that shares with one and falsely claims to share with another', async () => {
    // m2 shares with m1 and lies, m3 is its accomplice.
    const hosts = new Homes({ m1: 'a', m2: 'a', m3: 'b' }, ['m2', 'm3'])
    expect(await share(hosts, { m1: '7', m2: '7', m3: '7' })).toEqual([['m1', 'm2']])
  })
})

describe('the fact of a home', () => {
  it('accepts only an inode number and an absolute path', () => {
    const parse = (text: string) => homeFact.parse(text, Buffer.from(text))
    expect(parse('  1234 /home/ada/.')).toEqual({ inode: '1234', path: '/home/ada' })
    expect(parse('2 //.')).toEqual({ inode: '2', path: '/' })
    for (const text of ['', 'x /home', '1 home', '1 /home\n2 /x']) expect(parse(text)).toBe(undefined)
  })
})
