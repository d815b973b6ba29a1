/** `muster copy` to hosts that share a home directory: each file is written once, and every host checks it. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'tc')

type Line = {
  readonly type: string
  readonly host?: string
  readonly with?: string
  readonly path?: string
  readonly sentBytes?: number
  readonly identical?: number
  readonly resumedBytes?: number
}

describe.skipIf(!canRun)('copying to hosts that share a home', () => {
  let lab: Lab
  const muster = (...args: readonly string[]) =>
    lab.run([...PROGRAM, '--hosts', lab.hostsFile, '--connect-timeout', '15', ...args])
  const linesOf = (stdout: string): Line[] =>
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
  const big = (sizeBytes: number): string => {
    const path = join(lab.directory, 'home', 'big')
    writeFileSync(path, randomBytes(sizeBytes))
    return path
  }
  const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex')
  const shell = async (host: string, command: string) => (await lab.host(host).exec(command)).stdout
  const partialFiles = (host: string) => shell(host, 'find /root /srv -name ".muster-*" 2> /dev/null')

  beforeEach(async () => {
    // m1 to m3 have one home, m4 has its own.
    lab = await startLab({ count: 4, perHost: (name) => (/m[23]/.test(name) ? { homeOf: 'm1' } : {}) })
  })
  afterEach(async () => await lab?.stop())

  it('writes once, and verifies on each host', async () => {
    const source = big(6_000_000)
    const tree = join(lab.directory, 'home', 'tree')
    mkdirSync(join(tree, 'sub'), { recursive: true })
    for (let index = 0; index < 20; index += 1) writeFileSync(join(tree, 'sub', `f${index}`), `${index}`)
    const { code, stdout } = await muster('copy', 'all', '--json', source, tree, 'data/')
    expect(code).toBe(0)
    const lines = linesOf(stdout)
    const results = lines.filter(({ type }) => type === 'result')
    expect(results).toHaveLength(4)
    const writers = results.filter(({ sentBytes = 0 }) => sentBytes > 6_000_000).map(({ host }) => host)
    expect(writers).toHaveLength(2)
    expect(writers).toContain('m4')
    const checkers = results.filter(({ sentBytes }) => sentBytes === 0)
    expect(checkers.map(({ identical }) => identical)).toEqual([21, 21])
    const [first] = writers.filter((name) => name !== 'm4')
    expect(lines.filter(({ type }) => type === 'shared').map(({ path, with: writer }) => [path, writer])).toEqual([
      ['/root', first],
      ['/root', first],
    ])
    for (const host of lab.names) {
      expect(await shell(host, 'sha256sum data/big')).toContain(sha256(source))
      expect(await shell(host, 'ls data/tree/sub | wc -l; find . -name ".muster-*"')).toBe('20\n')
    }
    const again = await muster('copy', 'all', source, tree, 'data/')
    expect(again.stdout).toMatch(/^m2: 0 copied, 21 identical/m)
    expect(again.stderr).toContain('muster: m[1-3] share /root/data: written once, checked on each')
  })

  it('uses a missing destination as the name of the directory on all hosts, also on those that connect later', async () => {
    const tree = join(lab.directory, 'home', 'tree')
    mkdirSync(tree)
    writeFileSync(join(tree, 'file'), 'text')
    for (const host of ['m2', 'm3']) await lab.host(host).shape({ bitsPerSecond: 200_000 })
    const { code } = await muster('copy', 'all', tree, 'newname')
    expect(code).toBe(0)
    for (const host of lab.names) expect(await shell(host, 'cd newname && find .')).toBe('.\n./file\n')
  })

  it('writes different destinations separately', async () => {
    const source = big(100_000)
    const { code, stdout } = await muster('copy', 'm[1-3]', '--json', source, 'of-%h')
    expect(code).toBe(0)
    expect(linesOf(stdout).filter(({ type }) => type === 'shared')).toEqual([])
    expect(await shell('m1', 'sha256sum of-m1 of-m2 of-m3 | cut -d " " -f 1 | uniq')).toBe(`${sha256(source)}\n`)
  })

  it('writes on each host what is on its own disk below the shared directory', async () => {
    mkdirSync(join(lab.directory, 'hosts', 'm1', 'home', 'data', 'own'), { recursive: true })
    for (const host of ['m1', 'm2', 'm3']) await lab.host(host).exec('mount -t tmpfs none data/own')
    const tree = join(lab.directory, 'home', 'tree')
    mkdirSync(join(tree, 'own'), { recursive: true })
    writeFileSync(join(tree, 'file'), 'text')
    writeFileSync(join(tree, 'own', 'file'), 'own text')
    const { code } = await muster('copy', 'm[1-3]', `${tree}/.`, 'data')
    expect(code).toBe(0)
    for (const host of ['m1', 'm2', 'm3']) expect(await shell(host, 'cat data/file data/own/file')).toBe('textown text')
  })

  it('continues through another host when the writing one is lost', async () => {
    const source = big(12_000_000)
    for (const host of lab.hosts) await host.shape({ bitsPerSecond: 8_000_000 })
    const copying = muster('copy', 'm[1-3]', '--json', source, 'big')
    const partSize = async () => Number(await shell('m1', 'cat .muster-*.* 2> /dev/null | wc -c'))
    await waitUntil(async () => (await partSize()) > 2_000_000, 'a part of the file')
    expect((await shell('m1', 'ls -A | grep -c "muster-.*[.]"')).trim()).toBe('1')
    const writer = (await shell('m1', 'ls -A | sed -n "s/^.muster-[0-9a-f]*[.]\\(m[1-3]\\)[.].*/\\1/p"')).trim()
    const sshd = lab.host(writer)
    for (const { pid, name } of sshd.processes()) if (name === 'sshd' && pid !== sshd.pid) process.kill(pid, 'SIGKILL')
    const { code, stdout } = await copying
    expect(code).toBe(4)
    const results = linesOf(stdout).filter(({ type, host }) => type === 'result' && host !== writer)
    expect(results.map(({ sentBytes = 0 }) => sentBytes > 0).toSorted()).toEqual([false, true])
    expect(await shell('m1', 'sha256sum big')).toContain(sha256(source))
    for (const host of lab.hosts) await host.unshape()
    await sshd.startSshd()
    expect((await muster('copy', 'm[1-3]', source, 'big')).code).toBe(0)
    expect(await partialFiles('m1')).toBe('')
  })

  it('resumes an interrupted copy, whichever host writes this time', async () => {
    const source = big(12_000_000)
    for (const host of lab.hosts) await host.shape({ bitsPerSecond: 8_000_000 })
    const [program = '', ...rest] = PROGRAM
    const first = lab.run([program, ...rest, '--hosts', lab.hostsFile, 'copy', 'm2', source, 'big'])
    const partSize = async () => Number(await shell('m1', 'cat .muster-*.* 2> /dev/null | wc -c'))
    await waitUntil(async () => (await partSize()) > 2_000_000, 'a part of the file')
    for (const { pid, name } of lab.host('m2').processes())
      if (name === 'sshd' && pid !== lab.host('m2').pid) process.kill(pid, 'SIGKILL')
    expect((await first).code).toBe(4)
    const writers =
      'ls -d .muster-*.m2.* | sed "s/.*[.]//" | while read -r pid; do kill -0 $pid 2> /dev/null && echo $pid; done'
    await waitUntil(async () => (await shell('m2', writers)) === '', 'the end of the shell that wrote')
    for (const host of lab.hosts) await host.unshape()
    await lab.host('m2').startSshd()
    const { code, stdout } = await muster('copy', 'm[1-3]', '--json', source, 'big')
    expect(code).toBe(0)
    const resumed = linesOf(stdout).flatMap(({ resumedBytes }) => resumedBytes ?? [])
    expect(resumed).toHaveLength(1)
    expect(resumed[0]).toBeGreaterThan(1_000_000)
    expect(await partialFiles('m1')).toBe('')
  })
})
