import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { factScript, parseFacts } from '../../../../src/ops/doctor/fact-script.ts'
import { gpusFact } from '../../../../src/ops/doctor/facts/gpus.ts'
import { gpuComplaints } from '../../../../src/ops/doctor/findings/gpus.ts'
import { limitedFunctions } from '../../../../src/ops/kernel/fact.ts'
import { NO_FACTS } from './capture.ts'

const TWO = `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-6cddd06f-8784-75c0-bba2-de77592df22f)
  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 3g.20gb     Device  1: (UUID: MIG-c8f5c6a1-5e0e-5a9c-8f13-0c6f1f9a5d3b)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-99f06fa1-1d4f-4f0a-b4b0-e4a6a7a1b2c3)`
const MISMATCH = 'Failed to initialize NVML: Driver/library version mismatch'

describe('GPUs of a host', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-gpus-'))
    // A PATH in which there is no nvidia-smi but the one of the test.
    for (const name of ['sh', 'grep', 'head', 'timeout', 'true', 'cat']) {
      const found = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()
      symlinkSync(found, join(directory, name))
    }
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  /** nvidia-smi prints the text on this stream and exits with the status. */
  function asked(text: string, status: number, stream: 1 | 2 = 1): string {
    const bin = mkdtempSync(join(directory, 'bin-'))
    writeFileSync(join(bin, 'said'), `${text}\n`)
    const program = `#!/bin/sh\n[ "$*" = -L ] || exit 99\ncat '${join(bin, 'said')}' >&${stream}\nexit ${status}\n`
    writeFileSync(join(bin, 'nvidia-smi'), program, { mode: 0o755 })
    return execFileSync('sh', ['-c', `${limitedFunctions()}\nread_gpus() {${gpusFact.script}}\nread_gpus`], {
      encoding: 'utf8',
      env: { PATH: `${bin}:${directory}` },
    })
  }
  const parsed = (text: string) => gpusFact.parse(text, Buffer.from(text))

  test('are the lines of nvidia-smi -L, without the parts of MIG', () => {
    expect(parsed(asked(TWO, 0))).toEqual({ count: 2 })
    expect(parsed(asked('No devices found.', 0))).toEqual({ count: 0 })
  })

  test('that a driver does not show have its first line', () => {
    expect(parsed(asked(`${MISMATCH}\nNVML library version: 580.159`, 18))).toEqual({ count: 0, failure: MISMATCH })
    expect(
      parsed(asked("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9, 2)),
    ).toEqual({
      count: 0,
      failure: "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
    })
    expect(parsed(asked('x'.repeat(1_000_000), 1))?.failure).toHaveLength(200)
  })

  test('are read by the script of all facts', () => {
    expect(factScript('mark')).toContain('nvidia-smi -L')
    expect(parseFacts('\nmark gpus 0\x1fcount=8\n', 'mark').gpus).toEqual({ count: 8 })
    expect(parseFacts('\nmark gpus 137\x1f\n', 'mark')).toMatchObject({ gpus: undefined })
    expect(parseFacts('\nmark gpus 137\x1f\n', 'mark').hanging).toContain('gpus')
  })

  test('are unknown, never zero, for hostile bytes', () => {
    const known = (text: string) => Number.isSafeInteger(parsed(text)?.count ?? 0)
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => known(text) && known(`count=${text}`)))
    expect(parsed('count=-1')).toBeUndefined()
    expect(parsed('count=1e9')).toBeUndefined()
  })

  const complaints = (count: number, declared: number | undefined, failure?: string) =>
    gpuComplaints({ ...NO_FACTS, gpus: { count, ...(failure === undefined ? {} : { failure }) } }, declared)

  test.each([
    [1, 11, 'risk', 'gpus-missing', 'hosts.yaml declares 11 GPUs, and it has 1'],
    [0, 1, 'risk', 'gpus-missing', 'hosts.yaml declares 1 GPU, and it has none'],
    [8, 4, 'note', 'gpus-undeclared', 'hosts.yaml declares 4 GPUs, and it has 8'],
  ])('%i of them where hosts.yaml declares %i are a %s', (count, declared, gravity, id, cause) => {
    expect(complaints(count, declared)).toMatchObject([{ gravity, id, cause }])
    expect(complaints(count, declared)[0]?.hint).toContain(`gpu: ${count}`)
  })

  test('are no finding where they agree, nothing is declared, or nothing is known', () => {
    expect([complaints(2, 2), complaints(2, undefined), gpuComplaints(NO_FACTS, 8)]).toEqual([[], [], []])
  })

  test('whose driver fails are one finding, with what to do', () => {
    expect(complaints(0, 8, MISMATCH)).toMatchObject([
      { gravity: 'risk', id: 'gpus-fail', detail: MISMATCH, hint: expect.stringContaining('reboot') },
    ])
    expect(complaints(0, undefined, 'GPU is lost')).toMatchObject([{ id: 'gpus-fail', fix: { command: 'nvidia-smi' } }])
  })
})
