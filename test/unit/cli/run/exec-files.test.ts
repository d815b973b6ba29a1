import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { execFile, OutputDirectory } from '../../../../src/cli/run/exec-files.ts'
import { OutputStore } from '../../../../src/ops/run/output-store.ts'
import { requirement } from '../../../support/requirements.ts'

it.skipIf(!requirement('mkfifo'))('refuses a pipe that nothing writes into, without waiting', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-script-'))
  try {
    execFileSync('mkfifo', [join(directory, 'pipe')])
    await expect(execFile(join(directory, 'pipe'), '--script')).rejects.toThrow('pipe is not a regular file')
  } finally {
    rmSync(directory, { recursive: true })
  }
})

describe('the files of --out', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-out-'))
  })
  afterEach(() => {
    rmSync(directory, { recursive: true })
  })

  it('follow no link at their path', () => {
    const out = join(directory, 'out')
    const files = new OutputDirectory(out, ['m1'], false)
    writeFileSync(join(directory, 'precious'), 'kept')
    symlinkSync('../precious', join(out, 'm1.out.part'))
    using store = new OutputStore(directory)
    store.of('m1').stdout.push(Buffer.from('output'))
    files.write('m1', store.of('m1'))
    expect(readFileSync(join(directory, 'precious'), 'utf8')).toBe('kept')
    expect(readFileSync(join(out, 'm1.out'), 'utf8')).toBe('output')
    expect(readdirSync(out).sort()).toEqual(['m1.err', 'm1.out'])
  })

  it('are written into new directories, and a path in the way is named', () => {
    const deep = join(directory, 'a', 'b')
    expect(new OutputDirectory(deep, ['m1'], false).path).toBe(deep)
    expect(new OutputDirectory(deep, ['m1'], false).path).toBe(deep)
    writeFileSync(join(directory, 'file'), '')
    expect(() => new OutputDirectory(join(directory, 'file'), ['m1'], false)).toThrow(
      'something with that name already exists',
    )
    const below = join(directory, 'file', 'none')
    expect(() => new OutputDirectory(below, ['m1'], false)).toThrow(`--out ${below}`)
  })

  it.each(['stdout', 'stderr'])('are both left out where %s cannot be written, also old ones', (name) => {
    for (const old of ['m1.out', 'm1.err']) writeFileSync(join(directory, old), 'old')
    const files = new OutputDirectory(directory, ['m1'], true)
    const broken = {
      *read(): Generator<Uint8Array> {
        yield Buffer.from('half')
        throw new Error('no space left on device')
      },
    }
    using store = new OutputStore(directory)
    const output = { ...store.of('m1'), [name]: broken } as unknown as ReturnType<typeof store.of>
    expect(() => files.write('m1', output)).toThrow('no space left')
    expect(readdirSync(directory)).toEqual([])
    const all = new Map([
      ['m0', store.of('m0')],
      ['m1', output],
    ])
    expect(() => files.writeAll(all)).toThrow('no space left')
    expect(readdirSync(directory)).toEqual([])
  })
})
