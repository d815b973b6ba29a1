import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KnownHostsFiles } from '../../../../src/ssh/known-hosts/verifier.ts'
import { blobOf } from '../../../unit/inventory/known-hosts/key-blobs.ts'

const KEY = blobOf('ssh-ed25519')

describe('known_hosts files', () => {
  let directory: string
  let file: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-known-hosts-'))
    file = join(directory, 'known_hosts')
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  it('treat a missing file as empty', async () => {
    const naming = await new KnownHostsFiles().read([file, join(directory, 'no', 'such', 'file')])
    expect(naming('m8')).toEqual([])
  })

  it('are an error if they exist but cannot be read', async () => {
    mkdirSync(file)
    await expect(new KnownHostsFiles().read([file])).rejects.toMatchObject({ code: 'configuration' })
  })

  it('are read in the order in which they are named, and again when they change', async () => {
    const files = new KnownHostsFiles()
    await files.add(file, 'm8', KEY, false)
    const other = join(directory, 'other')
    await files.add(other, 'm8', KEY, false)
    const places = (await files.read([other, file]))('m8').map((entry) => `${entry.file}:${entry.line}`)
    expect(places).toEqual([`${other}:1`, `${file}:1`])
    await files.add(file, 'm10', KEY, false)
    expect((await files.read([file]))('m10')).toHaveLength(1)
  })

  it('are created with their directory, for the owner only', async () => {
    const inNew = join(directory, '.ssh', 'known_hosts')
    await new KnownHostsFiles().add(inNew, 'm8', KEY, false)
    expect(statSync(inNew).mode & 0o777).toBe(0o600)
    expect(statSync(join(directory, '.ssh')).mode & 0o777).toBe(0o700)
  })

  it('keep other lines and their comments, and end an unfinished last line', async () => {
    writeFileSync(file, '# mine\nm1 ssh-rsa AAAA broken')
    await new KnownHostsFiles().add(file, 'm8', KEY, false)
    const lines = readFileSync(file, 'utf8').split('\n')
    expect(lines.slice(0, 2)).toEqual(['# mine', 'm1 ssh-rsa AAAA broken'])
    expect(lines[2]).toMatch(/^m8 ssh-ed25519 /)
  })

  it('get a key only once', async () => {
    const files = new KnownHostsFiles()
    await Promise.all([1, 2, 3].map(() => files.add(file, 'm8', KEY, true)))
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(1)
  })

  it('are freed of a lock that its owner left behind', async () => {
    writeFileSync(`${file}.muster-lock`, '1\n')
    const longAgo = new Date(Date.now() - 60_000)
    utimesSync(`${file}.muster-lock`, longAgo, longAgo)
    await new KnownHostsFiles().add(file, 'm8', KEY, false)
    expect(readdirSync(directory)).toEqual(['known_hosts'])
  })

  it('say which file could not be written, and why', async () => {
    writeFileSync(file, '')
    const below = join(file, 'ssh', 'known_hosts')
    const why = `cannot record a host key in ${below}: part of its path is not a directory`
    await expect(new KnownHostsFiles().add(below, 'm8', KEY, false)).rejects.toThrow(why)
  })

  it('are written by processes at once without a line lost or doubled', async () => {
    const go = join(directory, 'go')
    const script = `
      import { existsSync } from 'node:fs'
      import { KnownHostsFiles } from ${JSON.stringify(pathToFileURL('src/ssh/known-hosts/verifier.ts').href)}
      import { blobOf } from ${JSON.stringify(pathToFileURL('test/unit/inventory/known-hosts/key-blobs.ts').href)}
      console.log('ready')
      while (!existsSync(${JSON.stringify(go)})) await new Promise((resolve) => setImmediate(resolve))
      const files = new KnownHostsFiles()
      for (let host = 0; host < 20; host += 1) {
        await files.add(${JSON.stringify(file)}, 'm' + host, blobOf('ssh-ed25519', host), host % 2 === 0)
      }
    `
    const children = [1, 2, 3].map(() =>
      spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    )
    const exits = children.map((child) => once(child, 'exit'))
    await Promise.all(children.map((child) => once(child.stdout, 'data')))
    writeFileSync(go, '')
    expect((await Promise.all(exits)).map(([code]) => code)).toEqual([0, 0, 0])
    const naming = await new KnownHostsFiles().read([file])
    for (let host = 0; host < 20; host += 1) {
      expect(naming(`m${host}`)).toHaveLength(1)
    }
    expect(existsSync(`${file}.muster-lock`)).toBe(false)
  })
})
