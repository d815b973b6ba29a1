/** An NFS mount as its client measures it: what dd of coreutils and of busybox print, and what a host may print instead. */
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { OpsHosts, ScriptResult } from '../../../../src/ops/kernel/host-port.ts'
import {
  measureNfs,
  type NfsEvent,
  newNfsRecord,
  nfsPlace,
  nfsSummary,
  silentText,
  takeNfsEvent,
} from '../../../../src/ops/net/nfs/measure-nfs.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { nfsPanes } from '../../../../src/ui/network/nfs-panes.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const MOUNTS = `/dev/sda1 / ext4 rw 0 0
10.9.0.1:/srv /data nfs4 rw,vers=4.2,addr=10.9.0.1 0 0
tmpfs /data/scratch tmpfs rw 0 0
`
const GNU = `write 4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.5 s, 8.4 MB/s
write 4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.5 s, 8.4 MB/s
read 4194304 bytes (4.2 MB, 4.0 MiB) copied, 1.0 s, 4.2 MB/s
small 512 bytes copied, 0.0031 s, 165 kB/s
`
const BUSYBOX = `write 4194304 bytes (4.0MB) copied, 2.000000 seconds, 2.0MB/s
cached
small 512 bytes (512B) copied, 0.004000 seconds, 125.0KB/s
`

async function measure(told: string, directory?: string, code = 0) {
  const events: NfsEvent[] = []
  const scripts: string[] = []
  const hosts: OpsHosts = {
    async exec(_, script, { onOutput }): Promise<ScriptResult> {
      scripts.push(script)
      const isList = script === 'cat /proc/mounts'
      // Cut anywhere.
      if (!isList) for (const character of told) onOutput?.('stdout', character)
      const stdout = Buffer.from(isList ? MOUNTS : told)
      return {
        outcome: { kind: 'exit', code: isList ? 0 : code },
        stdout,
        stderr: Buffer.from('no space'),
        durationMs: 1,
      }
    },
  }
  const signal = new AbortController().signal
  await measureNfs(
    'm8',
    { directory, seconds: 1 },
    { hosts, signal, clock: new ManualClock(), onEvent: (event) => events.push(event) },
  )
  const record = newNfsRecord('m8')
  for (const event of events) takeNfsEvent(record, event)
  return { events, record, scripts }
}

it('reads what dd of coreutils prints, on the first NFS mount of the host', async () => {
  const { record } = await measure(GNU)
  expect(nfsPlace(record)).toBe('m8:/data is 10.9.0.1:/srv (NFS 4.2)')
  expect(nfsSummary(record)).toEqual([
    'write: median 8.0 MiB/s, from 8.0 MiB/s to 8.0 MiB/s',
    'read: median 4.0 MiB/s, from 4.0 MiB/s to 4.0 MiB/s',
    'small file: median 3.1 ms, at most 3.1 ms, of 1 file',
  ])
})

it('reads what dd of busybox prints, and says that reading may only show the cache', async () => {
  const { record } = await measure(`${BUSYBOX}read 4194304 bytes (4.0MB) copied, 1.000000 seconds, 4.0MB/s\n`)
  expect(nfsSummary(record)).toEqual([
    'write: median 2.0 MiB/s, from 2.0 MiB/s to 2.0 MiB/s',
    "read (perhaps from the client's cache): median 4.0 MiB/s, from 4.0 MiB/s to 4.0 MiB/s",
    'small file: median 4.0 ms, at most 4.0 ms, of 1 file',
  ])
})

it('says that a directory is not on an NFS mount, and quotes its name', async () => {
  const { record, scripts } = await measure(GNU, "/data/scratch/it's; $(reboot)")
  expect(nfsPlace(record)).toContain('is not an NFS mount: this measures')
  expect(scripts[1]).toContain(`mktemp -d '/data/scratch/it'\\''s; $(reboot)/.muster-nfs-XXXXXXXX'`)
})

it('removes what it wrote and nothing else, also when another user moves directories meanwhile', async () => {
  const root = mkdtempSync(join(tmpdir(), 'muster-nfs-unit-'))
  try {
    const [data, programs] = [join(root, 'data'), join(root, 'bin')]
    const make = (name: string, file: string) => {
      const directory = join(data, name)
      mkdirSync(directory, { recursive: true })
      writeFileSync(join(directory, file), '')
      utimesSync(directory, 1, 1)
    }
    mkdirSync(programs)
    make('.muster-nfs-aaaaaaaa', 'data')
    make('.muster-nfs-bbbbbbbb', 'thesis')
    make('results', 'thesis')
    const program = (name: string, text: string) =>
      writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o700 })
    program('df', 'echo x 1 1 99999999')
    const script = (await measure(GNU, data)).scripts[1] ?? ''
    const run = () =>
      spawnSync('/bin/sh', ['-c', script], { env: { ...process.env, PATH: `${programs}:${process.env.PATH}` } })
    program('dd', `for word do case $word in of=*) echo > "\${word#of=}";; esac; done; exit 1`)
    expect(run().status).toBe(1)
    expect(readdirSync(data).toSorted()).toEqual(['.muster-nfs-bbbbbbbb', 'results'])
    rmSync(join(data, '.muster-nfs-bbbbbbbb'), { recursive: true })
    program('dd', `cd '${data}'; d=$(echo .muster-nfs-*); mv "$d" moved; mv results "$d"; exit 1`)
    expect(run().status).toBe(1)
    const [kept = ''] = readdirSync(data)
    expect(existsSync(join(data, kept, 'thesis'))).toBe(true)
  } finally {
    rmSync(root, { recursive: true })
  }
})

it.each([
  ['a link', 'ln -s "$other" "$d"'],
  ['a directory with a link', 'mkdir "$d"; ln -s "$other/data" "$d/data"'],
])('writes to nothing else and removes nothing else through %s in the place of its directory', async (_, swap) => {
  const root = mkdtempSync(join(tmpdir(), 'muster-nfs-unit-'))
  try {
    const [data, other, programs] = [join(root, 'data'), join(root, 'other'), join(root, 'bin')]
    for (const each of [data, other, programs]) mkdirSync(each)
    writeFileSync(join(other, 'data'), 'mine')
    const mktemp = `PATH=\${PATH#*:}; other='${other}'; d=$(mktemp "$@"); mv "$d" "$d.moved"; ${swap}; echo "$d"`
    for (const [name, text] of [
      ['df', 'echo x 1 1 99999999'],
      ['mktemp', mktemp],
    ] as const) {
      writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o700 })
    }
    const env = { ...process.env, PATH: `${programs}:${process.env.PATH}` }
    const { status, stderr } = spawnSync('/bin/sh', ['-c', (await measure(GNU, data)).scripts[1] ?? ''], { env })
    expect([status, stderr.toString()]).toEqual([1, expect.stringMatching(/^another account has replaced .*\n$/)])
    expect(readdirSync(other)).toEqual(['data'])
    expect(readFileSync(join(other, 'data'), 'utf8')).toBe('mine')
  } finally {
    rmSync(root, { recursive: true })
  }
})

it('refuses what is not a number, and shows no escape bytes', async () => {
  const { events, record } = await measure(
    'write 1e400 bytes x, 1 s,\nwrite -4 bytes x, 1 s,\nread 9 bytes x, NaN s,\n\x1b]0;owned\x07\nsmall 1 bytes, 1e-3 s,\n',
    '/data/\x1b[2J',
    1,
  )
  expect(events.filter(({ type }) => type === 'block')).toEqual([])
  expect(record.failures).toEqual(['no space (exit 1)'])
  const rect = { column: 0, row: 0, width: 80, height: 22 }
  const panes = nfsPanes(
    { record, isMeasuring: false, conclusion: undefined },
    { rect, theme: themes.none, chart: undefined },
  )
  const text = panes.flatMap(({ notice }) => notice.flat().map((span) => span.text)).join('\n')
  expect(text).toContain('\\x1b[2J')
  expect(text).not.toMatch(/[\x1b\x07]/)
})

it('says that the server does not answer, while it measures and when it is stopped', async () => {
  const clock = new ManualClock()
  const stop = new AbortController()
  const begun = Promise.withResolvers<(stream: 'stdout', text: string) => void>()
  const hosts: OpsHosts = {
    async exec(_, script, { onOutput, signal }): Promise<ScriptResult> {
      const none = { stderr: Buffer.alloc(0), durationMs: 1 }
      if (script === 'cat /proc/mounts')
        return { ...none, outcome: { kind: 'exit', code: 0 }, stdout: Buffer.from(MOUNTS) }
      if (onOutput) begun.resolve(onOutput)
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return { ...none, outcome: { kind: 'cancelled' }, stdout: Buffer.alloc(0) }
    },
  }
  const record = newNfsRecord('m8')
  const options = { directory: undefined, seconds: 1 }
  const onEvent = (event: NfsEvent) => void takeNfsEvent(record, event)
  const ended = measureNfs('m8', options, { hosts, signal: stop.signal, clock, onEvent })
  const print = await begun.promise
  clock.advance(4_000)
  print('stdout', GNU.split('\n')[0] ?? '')
  clock.advance(4_000)
  expect(record.isSilent).toBe(false)
  clock.advance(1_000)
  expect([record.isSilent, silentText(record)]).toEqual([
    true,
    'the server 10.9.0.1 has not answered for more than 5 s',
  ])
  clock.advance(7_000)
  stop.abort()
  await ended
  expect(record.failures).toEqual(['stopped after 12 s without an answer from the server 10.9.0.1'])
  expect([record.isSilent, clock.timerCount]).toEqual([false, 0])
})

it('says that a directory does not exist, and nothing else about it', async () => {
  const directory = join(tmpdir(), 'muster-nfs-nowhere')
  const { record, scripts } = await measure('', directory, 1)
  expect(nfsPlace(record)).toBe('m8')
  const { status, stderr } = spawnSync('/bin/sh', ['-c', scripts[1] ?? ''])
  expect([status, `${stderr}`]).toEqual([1, `there is no directory ${directory}\n`])
})
