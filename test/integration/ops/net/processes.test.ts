/** The processes of a host: what its script prints, as rows and rates, also when programs and hosts lie. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { PROCESS_SCRIPT, ProcessReader } from '../../../../src/ops/net/watch/processes.ts'
import { requirement } from '../../../support/requirements.ts'

type Counts = { cpu?: number; pages?: number; read?: number | '-'; start?: number; name?: string }
const line = (pid: number, { cpu = 0, pages = 1, read = '-', start = 100, name = 'sh' }: Counts = {}) =>
  `p ${pid} 1 S ${cpu} 0 3 ${start} ${pages} ${read} ${read} ${name}\n`
const report = (up: number, ...lines: string[]) => `up ${up}.00\n${lines.join('')}=\n`
const last = (text: string, reader = new ProcessReader()) => reader.push(text, 5000).at(-1)

it('holds no character that a login shell could read differently', () => {
  expect(PROCESS_SCRIPT).not.toMatch(/['\\!%\n]/)
})

describe('a report', () => {
  it('has rates since the previous report (for a new process, since its start), and leaves out what is unknown', () => {
    const seen = last(
      [
        'units 100 4096\n',
        report(1000, line(1, { cpu: 500, read: 1000 }), line(2, { cpu: 50 })),
        'c 1 root /sbin/init\nc 2 alice python train.py --lr 1\n',
        report(1002, line(1, { cpu: 550, read: 5000 }), line(2, { cpu: 350 }), line(3, { cpu: 20, start: 100_100 })),
      ].join(''),
    )
    expect(seen?.processes).toEqual([
      {
        ...{ pid: 1, user: 'root', state: 'S', threads: 3, command: '/sbin/init', memoryBytes: 4096 },
        ...{ cpu: 0.25, readBytes: 2000, writtenBytes: 2000 },
      },
      { pid: 2, user: 'alice', state: 'S', threads: 3, command: 'python train.py --lr 1', memoryBytes: 4096, cpu: 1.5 },
      { pid: 3, state: 'S', threads: 3, command: 'sh', memoryBytes: 4096, cpu: 0.1 },
    ])
    const first = last(report(1000, line(1, { cpu: 500 })))
    expect(first?.processes[0]).not.toHaveProperty('cpu')
  })

  it('does not mistake a new process for an old one with the same number', () => {
    const reader = new ProcessReader()
    last(report(1000, line(7, { cpu: 900, start: 5 })), reader)
    expect(last(report(1002, line(7, { cpu: 100, start: 100_050 })), reader)?.processes[0]?.cpu).toBe(0.5)
  })

  it('knows which process uses a GPU, whatever the columns of nvidia-smi are', () => {
    const reader = new ProcessReader()
    const [one, two] = [line(7), line(8)]
    last(report(1000, one, two), reader)
    last(
      [
        'gpu # gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command\n',
        'gpu # Idx           #    C/G      %      %      %      %      %      %     MB     MB    name\n',
        'gpu     0          7     C     93     40      -      -      -      -   8000      0    python\n',
        'gpu     1          7     C     12      4      -      -      -      -   9000      0    python\n',
        'gpu     2          -     -      -      -      -      -      -      -      -      -    -\n',
        'app 8, 512\napp [N/A], 3\n',
        'gpus\n',
      ].join(''),
      reader,
    )
    const seen = last(report(1002, one, two), reader)?.processes
    expect(seen?.[0]).toMatchObject({ pid: 7, gpu: 0.93, gpuBytes: 9000 * 2 ** 20 })
    expect(seen?.[1]).toMatchObject({ pid: 8, gpuBytes: 512 * 2 ** 20 })
    expect(seen?.[1]).not.toHaveProperty('gpu')
  })

  it('leaves out the script itself and its programs', () => {
    const own = [
      'self 50\n',
      report(1000, line(1), line(50), line(51).replace(' 1 S', ' 50 S'), line(52).replace(' 1 S', ' 51 S')),
    ]
    expect(last(own.join(''))?.processes.map(({ pid }) => pid)).toEqual([1])
  })
})

/** What the script prints until this text is in it. */
async function printed(until: string, environment: NodeJS.ProcessEnv): Promise<string> {
  const script = spawn('/bin/sh', ['-c', PROCESS_SCRIPT], {
    env: environment,
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  })
  const chunks: Buffer[] = []
  let isEnded = false
  script.stdout.on('data', (bytes: Buffer) => {
    chunks.push(bytes)
    if (isEnded || !Buffer.concat(chunks).includes(until)) return
    isEnded = true
    process.kill(-(script.pid as number), 'SIGKILL')
  })
  await once(script, 'close')
  return Buffer.concat(chunks).toString()
}

it.skipIf(!requirement('/proc'))('lets no process that uses a GPU forge lines by its name', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-gpu-'))
  try {
    const program = join(directory, 'nvidia-smi')
    writeFileSync(program, `#!/bin/sh\ncat <<'END'\n    0  7  C  93  40  evil\\nself 1\nEND\n`)
    chmodSync(program, 0o700)
    const text = await printed('\ngpus\n', { ...process.env, PATH: `${directory}:${process.env.PATH}` })
    expect(text.split('\n').filter((each) => each.startsWith('self '))).toHaveLength(1)
    expect(text).toContain('gpu     0  7  C  93  40  evil\\nself 1\n')
  } finally {
    rmSync(directory, { recursive: true })
  }
})

it.skipIf(!requirement('/proc'))('reads command lines in any script where the login has no UTF-8 locale', async () => {
  const named = spawn('sleep', ['600'], { argv0: '训练-ü', stdio: 'ignore' })
  try {
    await once(named, 'spawn')
    expect(await printed('\n=\n', { PATH: process.env.PATH })).toContain('训练-ü 600')
  } finally {
    named.kill('SIGKILL')
  }
})

describe('a hostile host', () => {
  it('prints no control characters, and no process twice', () => {
    const seen = last(`${report(1000, line(1, { name: 'a\x1b[2Jb' }), line(1, { name: 'other', pages: 99 }))}`)
    expect(seen?.processes).toHaveLength(1)
    expect(seen?.processes[0]?.command).toBe('a\\x1b[2Jb')
    const reader = new ProcessReader()
    last(report(1000, line(1)), reader)
    const named = last(`c 1 ro\x07ot ${'x'.repeat(200)}\u202e\n${report(1002, line(1))}`, reader)?.processes[0]
    expect(named?.user).toBe('ro\\x07ot')
    expect(named?.command).not.toContain('\u202e')
  })

  it('is bounded, and its broken lines are skipped', () => {
    const broken = [
      'p\n',
      'p x 1 S 1 1 1 1 1 - - sh\n',
      `p ${'9'.repeat(99)} 1 S\n`,
      'c\n',
      'app\n',
      'gpu\n',
      'units x -1\n',
    ]
    expect(last(report(1000, ...broken, line(4)))?.processes.map(({ pid }) => pid)).toEqual([4])
    const many = Array.from({ length: 20_000 }, (_, pid) => line(pid + 1))
    expect(last(report(1000, ...many))?.processes).toHaveLength(8000)
    const reader = new ProcessReader()
    for (let count = 0; count < 50; count += 1) reader.push('x'.repeat(2 ** 20), 0)
    expect(last(`\n=\n${report(1000, line(4))}`, reader)?.processes).toHaveLength(1)
  })

  it('is reported when it cannot list processes', () => {
    const reader = new ProcessReader()
    reader.push('none\n', 0)
    expect(reader.isUnsupported).toBe(true)
  })
})

it.skipIf(!requirement('/proc'))(
  'finds processes whose names hold line breaks or what looks like numbers',
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-names-'))
    const named = ['two\nlines', 'x) S 1\n9 (y) S', '\n7 (x) S 1 1 1'].map((name) => {
      symlinkSync('/bin/sh', join(directory, name))
      return { name, sh: spawn(join(directory, name), ['-c', 'read -r x'], { stdio: ['pipe', 'ignore', 'ignore'] }) }
    })
    try {
      const lines = (await printed('\n=\n', process.env)).split('\n')
      for (const { name, sh } of named)
        expect(lines.find((each) => each.startsWith(`p ${sh.pid} `))?.endsWith(` ${name.replaceAll('\n', ' ')}`)).toBe(
          true,
        )
    } finally {
      for (const { sh } of named) sh.kill('SIGKILL')
      rmSync(directory, { recursive: true })
    }
  },
)
