/** The counters of a watched host, as a Debian 12 has printed them, and graphics cards as their tools print them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { WatchHandlers } from '../../../../src/ops/net/watch/repeated-script.ts'
import { type Sample, SampleReader, WATCH_SCRIPT } from '../../../../src/ops/net/watch/sample.ts'
import { HISTORY_MS, HostWatch, keepSample } from '../../../../src/ops/net/watch/watch-hosts.ts'
import { requirement } from '../../../support/requirements.ts'
import { ManualClock } from '../../../unit/ssh/manual-clock.ts'

const captured = readFileSync(join(import.meta.dirname, '../../../fixtures/net/watch-debian.txt'), 'utf8')

/** One second with these counters. */
const second = (up: number, { busy = 0, idle = 0, inBytes = 0, outBytes = 0, sectors = 0, nfs = '' } = {}) =>
  `${up}.00 1.00
0.50 0.40 0.30 1/100 4711
cpu  ${busy} 0 0 ${idle} 0 0 0 0 0 0
MemTotal: 1000 kB
MemFree: 100 kB
MemAvailable: 400 kB
SwapTotal: 200 kB
SwapFree: 150 kB
pswpin 5
pswpout 7
eth0: ${inBytes} 1 0 0 0 0 0 0 ${outBytes} 1 0 0 0 0 0 0
lo: 999999 1 0 0 0 0 0 0 999999 1 0 0 0 0 0 0
8 0 sda 10 0 ${sectors} 5 10 0 ${2 * sectors} 5 0 ${up * 500} 10
${nfs}=
`

const read = (text: string): readonly Sample[] => new SampleReader().push(text, 1000)

describe('samples', () => {
  it('have no more cores than a kernel can have, whatever a host says', () => {
    const [one] = read(`cores 9000000000000000\n${second(1)}${second(2)}`)
    expect(one?.cores).toBe(65_536)
  })

  it('are read from the output of a real machine, starting with the second one', () => {
    const samples = read(captured)
    expect(samples.length).toBeGreaterThanOrEqual(2)
    for (const sample of samples) {
      expect(sample.cores).toBe(2)
      expect(sample.cpu).toBeGreaterThanOrEqual(0)
      expect(sample.cpu).toBeLessThanOrEqual(1)
      expect(sample.memoryBytes).toBe(24684092 * 1024)
      expect(sample.memoryUsedBytes).toBeLessThan(sample.memoryBytes)
      expect(sample.fullest?.point).toBe('/')
      expect(sample.cards.map(({ name }) => name)).toContain('eth0')
      expect(sample.gpus).toEqual([])
    }
  })

  it('are rates over the time that the host reports, without loopback', () => {
    const text = `cores 4\n${second(100, { busy: 100, idle: 100 })}${second(102, { busy: 150, idle: 250, inBytes: 3000, outBytes: 500, sectors: 8 })}`
    expect(read(text)).toEqual([
      expect.objectContaining({
        cores: 4,
        cpu: 0.25,
        load: 0.5,
        memoryBytes: 1024000,
        memoryUsedBytes: 614400,
        swapUsedBytes: 51200,
        swapped: 0,
        receivedBytes: 1500,
        sentBytes: 250,
        readBytes: 2048,
        writtenBytes: 4096,
        diskBusy: 0.5,
      }),
    ])
  })

  it('have the throughput and the latency of NFS', () => {
    const nfs = (bytes: number, operations: number, ms: number) =>
      `device m10:/x mounted on /x with fstype nfs4 statvers=1.1\nbytes:	1 2 3 4 ${bytes} 0 0 0\nREAD: ${operations} 9 0 1 1 0 ${ms} 8 0\n`
    const [sample] = read(second(1, { nfs: nfs(0, 10, 100) }) + second(2, { nfs: nfs(5000, 20, 130) }))
    expect(sample?.nfs).toEqual({ readBytes: 5000, writtenBytes: 0, operations: 10, roundTripMs: 3 })
  })

  it('have shares of at most 1, whatever tools print', () => {
    const tools = [
      'nvidia 0, GPU-aa, A100, 9999, 1, 2, 61, 310',
      'rocm device,GPU use (%)',
      'rocm card1,101',
      'fs Filesystem 1024-blocks Used Available Capacity Mounted on',
      'fs /dev/sda1 1 1 1 1000000000% /',
      '',
    ].join('\n')
    const [sample] = read(`${second(1)}${tools}${second(2)}`)
    expect(sample?.gpus.map(({ busy }) => busy)).toEqual([1, 1])
    expect(sample?.fullest).toEqual({ point: '/', used: 1 })
  })

  it('start again if a counter goes back', () => {
    const [sample] = read(second(1, { inBytes: 5000 }) + second(2, { inBytes: 100 }))
    expect(sample?.receivedBytes).toBe(0)
    expect(read(second(100) + second(3))).toEqual([])
  })

  it('have the values of GPUs, and do not treat unknown values as 0', () => {
    const gpus = [
      'nvidia 0, GPU-aa, NVIDIA A100-SXM4-80GB, 87, 40000, 81920, 61, 310.25',
      'nvproc GPU-aa, 4711, 39000',
      'nvidia 0, GPU-aa, NVIDIA A100-SXM4-80GB, 88, 40000, 81920, 61, 310.25',
      'nvidia 1, GPU-bb, Tesla K80, [N/A], [Not Supported], 11441, 30, [N/A]',
      'rocm device,Temperature (Sensor edge) (C),Average Graphics Package Power (W),GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B)',
      'rocm card3,45.0,90.0,12,17163091968,1000000000',
      '',
    ].join('\n')
    const [sample] = read(`${gpus}${second(1)}${second(2)}`)
    expect(sample?.gpus).toEqual([
      {
        id: '0',
        name: 'NVIDIA A100-SXM4-80GB',
        busy: 0.88,
        usedBytes: 40000 * 2 ** 20,
        totalBytes: 81920 * 2 ** 20,
        celsius: 61,
        watts: 310.25,
        processes: [4711],
      },
      { id: '1', name: 'Tesla K80', totalBytes: 11441 * 2 ** 20, celsius: 30 },
      { id: '3', name: 'AMD', busy: 0.12, totalBytes: 17163091968, usedBytes: 1e9, celsius: 45, watts: 90 },
    ])
  })

  it.each([
    {
      release: '5',
      head: 'device,Temperature (Sensor edge) (C),Temperature (Sensor junction) (C),Temperature (Sensor memory) (C),Average Graphics Package Power (W),GPU use (%),vram Total Memory (B),vram Total Used Memory (B),Card series,Card model,Card vendor,Card SKU',
      row: 'card0,31.0,35.0,37.0,35.0,7,34342961152,6762496,Arcturus GL-XL [Instinct MI100],0x0c34,Advanced Micro Devices Inc. [AMD/ATI],D3431401',
      gpu: { name: 'Arcturus GL-XL [Instinct MI100]', busy: 0.07, celsius: 31, watts: 35, usedBytes: 6762496 },
    },
    {
      release: '6 on an MI300X, which has no sensor at its edge',
      head: 'device,Temperature (Sensor edge) (C),Temperature (Sensor junction) (C),Temperature (Sensor memory) (C),Current Socket Graphics Package Power (W),GPU use (%),GFX Activity,VRAM Total Memory (B),VRAM Total Used Memory (B),Card Series,Card Model',
      row: 'card0,N/A,41.0,33.0,128.0,0,203885505,206141652992,297795584,AMD Instinct MI300X,0x74a1',
      gpu: { name: 'AMD Instinct MI300X', busy: 0, celsius: 41, watts: 128, usedBytes: 297795584 },
    },
  ])('know an AMD card by the columns of ROCm $release', ({ head, row, gpu }) => {
    const said = ['WARNING: AMD GPU device(s) is/are in a low-power state.', '', head, row]
    const [sample] = read(`${said.map((line) => `rocm ${line}\n`).join('')}${second(1)}${second(2)}`)
    expect(sample?.gpus).toEqual([expect.objectContaining({ id: '0', ...gpu })])
  })

  it('stay numbers whatever a host prints, and however it is cut', () => {
    const lines = fc.array(fc.oneof(fc.constantFrom(...captured.split('\n')), fc.string()), { maxLength: 80 })
    fc.assert(
      fc.property(lines, fc.integer({ min: 1, max: 50 }), (all, size) => {
        const reader = new SampleReader()
        const text = all.join('\n')
        for (let at = 0; at < text.length; at += size) {
          for (const sample of reader.push(text.slice(at, at + size), 0)) {
            const numbers = [sample.cpu, sample.receivedBytes, sample.sentBytes, sample.readBytes, sample.writtenBytes]
            for (const number of numbers) expect(number).toBeGreaterThanOrEqual(0)
          }
        }
      }),
    )
  })

  it('are kept for fifteen minutes', () => {
    const kept: Sample[] = []
    const [sample] = read(second(1) + second(2))
    if (sample === undefined) throw new Error('there is no sample')
    for (let atMs = 0; atMs <= 2 * HISTORY_MS; atMs += 1000) keepSample(kept, { ...sample, atMs })
    expect(kept).toHaveLength(HISTORY_MS / 1000)
  })

  it('are few, however many a host sends', () => {
    const kept: Sample[] = []
    const [sample] = read(second(1) + second(2))
    if (sample === undefined) throw new Error('there is no sample')
    for (let count = 0; count < 10_000; count++) keepSample(kept, { ...sample, atMs: 5000 + (count % 2) })
    expect(kept.length).toBeLessThanOrEqual(1000)
  })

  it('know a GPU only while its tool answers', () => {
    const reader = new SampleReader()
    const line = 'nvidia 0, GPU-aa, A100, 97, 40000, 81920, 61, 310\nnvproc GPU-aa, 4711, 1\nnvproc GPU-aa, 4711, 1\n'
    const seconds = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, index) => second(from + index)).join('')
    const idle = { id: '0', name: 'A100' }
    reader.push(seconds(1, 60) + line + line, 0)
    expect(reader.push(seconds(60, 75), 0).at(-1)?.gpus).toMatchObject([{ ...idle, busy: 0.97, processes: [4711] }])
    expect(reader.push(seconds(75, 90), 0).at(-1)?.gpus).toEqual([idle])
    reader.push(line, 0)
    expect(reader.push(second(90), 0)[0]?.gpus).toMatchObject([{ busy: 0.97 }])
  })

  it('have bounds of their own, however many cards, disks and GPUs a host makes up', () => {
    const reader = new SampleReader()
    const many = (line: (index: number) => string) => Array.from({ length: 50_000 }, (_, index) => line(index)).join('')
    const counters = (up: number) => second(up).replace(/=\n$/, '')
    const text = (up: number) =>
      `${counters(up)}${many((index) => `card${index}: ${'1 '.repeat(16)}\n`)}=\n${many((index) => `nvidia ${index}, u${index}, ${'x'.repeat(1000)}, 1, 1, 1, 1, 1\n`)}=\n`
    reader.push(text(1), 1000)
    reader.push(text(2), 2000)
    const [sample] = reader.push(second(3), 3000)
    if (sample === undefined) throw new Error('there is no sample')
    expect(JSON.stringify(sample).length).toBeLessThan(50_000)
  })

  it('of fifteen minutes take little memory, whatever a host makes up', () => {
    const [kept, reader] = [[] as Sample[], new SampleReader()]
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const many = (count: number, line: (index: number) => string) => Array.from({ length: count }, (_, at) => line(at))
    collect()
    const before = process.memoryUsage().heapUsed
    for (let up = 1; up <= 300; up += 1) {
      const cards = many(1500, (at) => `eth${at}-${up}.forged: ${`${up * at} `.repeat(16)}\n`)
      const gpus = many(300, (at) => `nvidia ${at}, GPU-${at}, ${`${up}`.repeat(200)}, 1, 1, 1, 1, 1\n`)
      const processes = many(3000, (at) => `nvproc GPU-${at % 300}, ${up * 10_000 + at}, 1\n`)
      const disk = `fs /dev/sda1 1 1 1 ${up % 100}% /${'d'.repeat(15_000)}\n`
      const lines = [disk, ...cards, ...gpus, ...processes].join('')
      for (const sample of reader.push(second(up).replace(/=\n$/, `${lines}=\n`), up * 1000)) keepSample(kept, sample)
    }
    expect(kept).toHaveLength(299)
    collect()
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 * 2 ** 20)
  })

  it('have no rates over a time that is too short for any', () => {
    const reader = new SampleReader()
    reader.push(second(1), 0)
    expect(reader.push(second(1).replace('1.00 ', '1.01 '), 1000)).toEqual([])
  })
})

it('is one line that every login shell hands to sh unchanged', () => {
  expect(WATCH_SCRIPT).not.toMatch(/['\\%!\n]/)
})

it.skipIf(!requirement('/proc'))('lets no file system forge lines by the name of its mount point', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-df-'))
  try {
    const text = 'sshfs 100 90 10 90% /home/mallory/a\\ncpu 9 9'
    writeFileSync(join(directory, 'df'), `#!/bin/sh\ncat <<'END'\n${text}\nEND\n`, { mode: 0o700 })
    const script = spawn('/bin/sh', ['-c', WATCH_SCRIPT], {
      env: { ...process.env, PATH: `${directory}:${process.env.PATH}` },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    })
    let printed = ''
    let isEnded = false
    script.stdout.on('data', (bytes: Buffer) => {
      printed += bytes.toString()
      if (isEnded || !printed.includes('\n=\n')) return
      isEnded = true
      process.kill(-(script.pid as number), 'SIGKILL')
    })
    await once(script, 'close')
    expect(printed).toContain(`\nfs ${text}\n`)
  } finally {
    rmSync(directory, { recursive: true })
  }
})

describe('watching', () => {
  it('restarts a script that has ended, later each time, and never one that cannot work', () => {
    const clock = new ManualClock()
    const started: { host: string; handlers: WatchHandlers }[] = []
    const troubles: string[] = []
    using watch = new HostWatch(['m1', 'mac'], {
      port: {
        start(host, _script, handlers) {
          started.push({ host, handlers })
          return { stop() {} }
        },
      },
      clock,
      onSample() {},
      onTrouble: (host, reason) => troubles.push(`${host}: ${reason}`),
    })
    started[1]?.handlers.onText('none\n')
    started[1]?.handlers.onEnd('exit 0')
    started[0]?.handlers.onEnd('unreachable: refused')
    expect(troubles).toEqual(['mac: it has no /proc: only Linux can be watched', 'm1: unreachable: refused'])
    clock.advance(2000)
    expect(started.map(({ host }) => host)).toEqual(['m1', 'mac', 'm1'])
    started[2]?.handlers.onEnd('unreachable: refused')
    clock.advance(3000)
    expect(started).toHaveLength(3)
    clock.advance(1000)
    expect(started).toHaveLength(4)
    started[3]?.handlers.onText(second(1) + second(2))
    expect(watch.hosts[0]?.samples).toHaveLength(1)
    expect(watch.hosts[0]?.trouble).toBeUndefined()
  })

  it('keeps the given order when a host comes back', () => {
    const port = { start: () => ({ stop() {} }) }
    using watch = new HostWatch(['m1', 'm2', 'm3'], { port, clock: new ManualClock(), onSample() {}, onTrouble() {} })
    const [, , m3] = watch.hosts
    watch.follow(['m1', 'm3'])
    watch.follow(['m1', 'm2', 'm3'])
    expect(watch.hosts.map(({ host }) => host)).toEqual(['m1', 'm2', 'm3'])
    expect(watch.hosts[2]?.samples).toBe(m3?.samples)
  })

  it('does not show old values of a silent host as those of now', () => {
    const clock = new ManualClock()
    const started: WatchHandlers[] = []
    using watch = new HostWatch(['m1'], {
      port: {
        start(_host, _script, handlers) {
          started.push(handlers)
          return { stop() {} }
        },
      },
      clock,
      onSample() {},
      onTrouble() {},
    })
    clock.advance(10_000)
    expect(watch.hosts[0]?.trouble).toBeUndefined()
    clock.advance(1_000)
    expect(watch.hosts[0]?.trouble).toBe('no data for 11 s')
    started[0]?.onText(second(1) + second(2))
    expect(watch.hosts[0]?.trouble).toBeUndefined()
    clock.advance(10_000)
    expect(watch.hosts[0]?.trouble).toBeUndefined()
    clock.advance(2_000)
    expect(watch.hosts[0]?.trouble).toBe('no data for 12 s')
    started[0]?.onText(second(3))
    expect(watch.hosts[0]?.trouble).toBeUndefined()
  })

  it('cuts off a host that prints without end, says so, and tries again later', () => {
    const clock = new ManualClock()
    const started: WatchHandlers[] = []
    const troubles: string[] = []
    let stops = 0
    using watch = new HostWatch(['m1'], {
      port: {
        start(_host, _script, handlers) {
          started.push(handlers)
          return { stop: () => void stops++ }
        },
      },
      clock,
      onSample() {},
      onTrouble: (_host, reason) => troubles.push(reason),
    })
    const flood = 'y\n'.repeat(512 * 1024)
    for (let count = 0; count < 64; count++) started[0]?.onText(flood)
    expect([stops, troubles]).toEqual([1, [expect.stringMatching(/^it printed more than 16\.0 MiB .* was cut off$/)]])
    started[0]?.onEnd('cancelled')
    expect(troubles).toHaveLength(1)
    expect(watch.hosts[0]?.trouble).toBe(troubles[0])
    clock.advance(2000)
    // What comes over a long time is none.
    for (let count = 0; count < 64; count++) {
      started[1]?.onText(flood)
      clock.advance(1000)
    }
    expect([started.length, stops]).toEqual([2, 1])
  })
})
