import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { factScript, parseFacts } from '../../../../src/ops/doctor/fact-script.ts'
import { type Gpus, gpusFact } from '../../../../src/ops/doctor/facts/gpus.ts'
import { gpuComplaints } from '../../../../src/ops/doctor/findings/gpus.ts'
import { hostFindings } from '../../../../src/ops/doctor/report.ts'
import { limitedFunctions } from '../../../../src/ops/kernel/fact.ts'
import { anyCharacter } from '../../../support/any-character.ts'
import { writeProgram } from '../../../support/program.ts'
import { NO_FACTS } from '../../../unit/ops/doctor/capture.ts'

const TWO = `GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-6cddd06f-8784-75c0-bba2-de77592df22f)
  MIG 3g.20gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)
  MIG 3g.20gb     Device  1: (UUID: MIG-c8f5c6a1-5e0e-5a9c-8f13-0c6f1f9a5d3b)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-99f06fa1-1d4f-4f0a-b4b0-e4a6a7a1b2c3)`
const ONE = 'GPU 0: NVIDIA H200 (UUID: GPU-6cddd06f-8784-75c0-bba2-de77592df22f)'
const UNREACHED =
  "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running."
const LOST =
  'Unable to determine the device handle for GPU 0000:0B:00.0: GPU is lost.  Reboot the system to recover this GPU'
const MISMATCH = 'Failed to initialize NVML: Driver/library version mismatch'

describe('GPUs of a host', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-gpus-'))
    // A PATH in which there is no nvidia-smi but the one of the test.
    for (const name of ['sh', 'grep', 'head', 'sed', 'timeout', 'true', 'cat', 'yes']) {
      const found = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()
      symlinkSync(found, join(directory, name))
    }
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  function read(program: string): string {
    const bin = mkdtempSync(join(directory, 'bin-'))
    writeProgram(join(bin, 'nvidia-smi'), `[ "$*" = -L ] || exit 99\n${program}`)
    const script = `exec 2> /dev/null\n${limitedFunctions()}\nread_gpus() {${gpusFact.script}}\nread_gpus; echo "ended=$?"`
    return execFileSync('sh', ['-c', script], { encoding: 'utf8', env: { PATH: `${bin}:${directory}` } })
  }
  /** nvidia-smi prints the text on this stream and exits with the status. */
  function asked(text: string, status: number, stream: 1 | 2 = 1): string {
    writeFileSync(join(directory, 'said'), `${text}\n`)
    return read(`cat '${join(directory, 'said')}' >&${stream}\nexit ${status}`)
  }
  const parsed = (text: string) => gpusFact.parse(text, Buffer.from(text))

  test('are the lines of nvidia-smi -L, without the parts of MIG', () => {
    expect(parsed(asked(ONE, 0))).toEqual({ count: 1 })
    expect(parsed(asked(TWO, 0))).toEqual({ count: 2 })
  })

  test('are none where nvidia-smi says so, whatever its exit code', () => {
    expect(parsed(asked('No devices found.', 0))).toEqual({ count: 0 })
    expect(parsed(asked('No devices were found', 6))).toEqual({ count: 0 })
    const text = 'Failed to initialize NVML: No supported GPUs were found\nUnable to determine the number of GPUs'
    expect(parsed(asked(text, 255))).toEqual({ count: 0 })
  })

  test.each([
    [`${MISMATCH}\nNVML library version: 580.159`, 18, 1, MISMATCH],
    [UNREACHED, 9, 2, UNREACHED],
    [
      'Failed to initialize NVML: Insufficient Permissions',
      255,
      1,
      'Failed to initialize NVML: Insufficient Permissions',
    ],
  ] as const)('are unknown where nvidia-smi fails: %j', (text, status, stream, line) => {
    expect(parsed(asked(text, status, stream))).toEqual({ failure: { status, line } })
  })

  test('are unknown where it fails without a word', () => {
    expect(parsed(read('exit 1'))).toEqual({ failure: { status: 1, line: '' } })
  })

  test('are those that it lists where it fails at another one, whose line is told', () => {
    for (const text of [`${TWO}\n${LOST}`, `${LOST}\n${TWO}`])
      expect(parsed(asked(text, 15))).toEqual({ count: 2, failure: { status: 15, line: LOST } })
  })

  test('are unknown for a flood, and a long line is cut', () => {
    expect(parsed(read('yes "GPU 0: NVIDIA H200"'))).toBeUndefined()
    expect(parsed(asked('x'.repeat(10_000), 1))).toEqual({ failure: { status: 1, line: 'x'.repeat(200) } })
  })

  test('are not read where nvidia-smi is killed at its limit', () => {
    const said = read('kill -9 $$')
    expect(said).toBe('ended=137\n')
    expect(parsed(said)).toBeUndefined()
  })

  test('are read by the script of all facts', () => {
    expect(factScript('mark')).toContain('nvidia-smi -L')
    expect(parseFacts('\nmark gpus 0\x1fcount=8\n', 'mark').gpus).toEqual({ count: 8 })
    expect(parseFacts('\nmark gpus 137\x1f\n', 'mark')).toMatchObject({ gpus: undefined })
    expect(parseFacts('\nmark gpus 137\x1f\n', 'mark').hanging).toContain('gpus')
  })

  test('that are not read in time are a risk, and the hint tells a slow driver from one that hangs', () => {
    const startup = { end: { kind: 'exit', code: 0 }, durationMs: 20, stdout: '', stderr: '' } as const
    const examination = { startup, facts: { ...NO_FACTS, hanging: ['gpus'] } }
    expect(hostFindings({ host: 'm1', connectMs: 30, declaredGpus: 8, examination })).toMatchObject([
      { gravity: 'risk', id: 'hangs', cause: 'nvidia-smi does not answer', hint: expect.stringContaining('-pm 1') },
    ])
  })

  test('are unknown, never zero, for hostile bytes', () => {
    const known = (text: string) => Number.isSafeInteger(parsed(text)?.count ?? 0)
    fc.assert(fc.property(fc.string({ unit: anyCharacter }), (text) => known(text) && known(`count=${text}`)))
    expect(parsed('count=-1')).toBeUndefined()
    expect(parsed('count=1e9')).toBeUndefined()
  })

  const complaints = (gpus: Gpus, declared: number | undefined) => gpuComplaints({ ...NO_FACTS, gpus }, declared)
  const failure = (line: string, status = 255): Gpus => ({ failure: { status, line } })

  test.each([
    [1, 11, 'risk', 'gpus-missing', 'hosts.yaml declares 11 GPUs, and it has 1'],
    [0, 1, 'risk', 'gpus-missing', 'hosts.yaml declares 1 GPU, and it has none'],
    [8, 4, 'note', 'gpus-undeclared', 'hosts.yaml declares 4 GPUs, and it has 8'],
    [8, 0, 'note', 'gpus-undeclared', 'hosts.yaml declares no GPU, and it has 8'],
  ])('%i of them where hosts.yaml declares %i are a %s', (count, declared, gravity, id, cause) => {
    expect(complaints({ count }, declared)).toMatchObject([{ gravity, id, cause }])
    expect(complaints({ count }, declared)[0]?.hint).toContain(`gpu: ${count}`)
  })

  test('are no finding where they agree, nothing is declared, or nothing is known', () => {
    expect([complaints({ count: 2 }, 2), complaints({ count: 2 }, undefined)]).toEqual([[], []])
    expect(gpuComplaints(NO_FACTS, 8)).toEqual([])
  })

  test('whose driver fails are one finding, with what to do', () => {
    expect(complaints(failure(MISMATCH), 8)).toMatchObject([
      { gravity: 'risk', id: 'gpus-fail', detail: MISMATCH, hint: expect.stringContaining('reboot') },
    ])
    expect(complaints({ count: 7, ...failure(LOST) }, 8)).toMatchObject([
      { gravity: 'risk', id: 'gpus-fail', detail: LOST, fix: { command: 'nvidia-smi' } },
    ])
    expect(complaints(failure('', 1), undefined)).toMatchObject([{ id: 'gpus-fail', detail: 'exit code 1' }])
  })

  test('whose driver fails are only noted where jobs may use none', () => {
    expect(complaints(failure(UNREACHED, 9), 0)).toMatchObject([{ gravity: 'note', id: 'gpus-fail' }])
  })
})
