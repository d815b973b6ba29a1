/** The verb on this machine without SSH, and on an address where nothing answers: events, lines, exit codes. */
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runProgram } from '../../../src/cli/program.ts'
import { freePort } from '../../support/openssh-server.ts'
import { writeProgram } from '../../support/program.ts'

let directory = ''
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'muster-doctor-'))
  const nobody = `{ address: 127.0.0.1, port: ${await freePort()} }`
  writeFileSync(join(directory, 'hosts.yaml'), `hosts: { here: { transport: local }, nobody: ${nobody} }\n`)
})
afterEach(() => rmSync(directory, { recursive: true }))

async function doctor(args: readonly string[], signal = new AbortController().signal, programs = '/bin') {
  const stdout = new PassThrough()
  const stderr = new PassThrough()
  const code = await runProgram(['doctor', ...args], {
    stdin: Readable.from([]),
    stdout,
    stderr,
    environment: { PATH: `${programs}:${process.env.PATH}`, HOME: directory },
    workingDirectory: directory,
    signal,
    now: () => Date.UTC(2026, 0, 2, 3, 4, 5),
  })
  return { code, output: String(stdout.read() ?? ''), errors: String(stderr.read() ?? '') }
}

describe('muster doctor', () => {
  it('names the host that was not reached and the phase, and exits with 4', async () => {
    const { code, output } = await doctor([])
    expect(output).toMatch(/^blocker {2}nobody: unreachable \(tcp\): .*connection refused\n {11}Check the port/)
    expect(output).toMatch(/^2 hosts: .*1 not reached$/m)
    expect(code).toBe(4)
  })

  it('prints findings, one object per host with null for unknown facts, and a summary with --json', async () => {
    const { output } = await doctor(['--json'])
    const events = output
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    const time = '2026-01-02T03:04:05.000Z'
    expect(events.find(({ type, host }) => type === 'finding' && host === 'nobody')).toMatchObject({
      time,
      gravity: 'blocker',
      id: 'unreachable',
      hint: expect.any(String),
    })
    expect(events.filter(({ type }) => type === 'host')).toMatchObject([
      { host: 'here', time, outcome: 'ok', facts: { route: null, system: { home: directory } } },
      { host: 'nobody', time, outcome: 'unreachable', status: 'unreachable', phase: 'tcp', blockers: 1 },
    ])
    expect(events.at(-1)).toMatchObject({ type: 'summary', hosts: 2, unreachable: 1 })
  })

  it('lets nothing of a host act on the terminal with --json', async () => {
    writeProgram(join(directory, 'bin/uname'), 'printf "\\302\\2331A\\342\\200\\256\\n"')
    const { output } = await doctor(['here', '--json'], undefined, join(directory, 'bin'))
    expect(output).toContain('\\\\x9b1A\\\\u202e')
    expect(output).not.toMatch(/[\u0080-\u009f\u202e]/)
  })

  describe('on a host with one GPU, by its nvidia-smi', () => {
    const H200 = 'GPU 0: NVIDIA H200 (UUID: GPU-6cddd06f-8784-75c0-bba2-de77592df22f)'
    const gpusOf = async (resources: string, program: string, target = 'here') => {
      writeProgram(join(directory, 'bin/nvidia-smi'), program)
      writeFileSync(join(directory, 'hosts.yaml'), `hosts: { here: { transport: local${resources} } }\n`)
      const { output } = await doctor([target, '--json'], undefined, join(directory, 'bin'))
      const events = output
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
      return {
        facts: events.find(({ type }) => type === 'host')?.facts,
        findings: events.filter(({ type, id }) => type === 'finding' && String(id).startsWith('gpus-')),
      }
    }

    it('says that hosts.yaml declares more, and which key to change', async () => {
      const { facts, findings } = await gpusOf(', resources: { gpu: 11 }', `echo '${H200}'`)
      expect(facts).toMatchObject({ gpus: { count: 1 } })
      expect(findings).toMatchObject([
        {
          gravity: 'risk',
          id: 'gpus-missing',
          cause: 'hosts.yaml declares 11 GPUs, and it has 1',
          hint: expect.stringContaining('set resources: { gpu: 1 } in hosts.yaml'),
        },
      ])
    })

    it('knows what is declared of it where the target names it with two logins', async () => {
      const { findings } = await gpusOf(', resources: { gpu: 2 }', `echo '${H200}'`, 'ann@here,bob@here')
      // In the order in which they answer.
      const told = findings.map(({ host, id }) => `${host} ${id}`)
      expect(told.toSorted()).toEqual(['ann@here gpus-missing', 'bob@here gpus-missing'])
    })

    it('notes that resources leave it out, and nothing where none are declared', async () => {
      expect((await gpusOf(', resources: { cpu: 2 }', `echo '${H200}'`)).findings).toMatchObject([
        { gravity: 'note', id: 'gpus-undeclared' },
      ])
      rmSync(join(directory, 'bin'), { recursive: true })
      expect((await gpusOf('', `echo '${H200}'`)).findings).toEqual([])
    })

    it('shows what nvidia-smi says when it fails', async () => {
      const line = 'Failed to initialize NVML: Driver/library version mismatch'
      const { facts, findings } = await gpusOf(', resources: { gpu: 1 }', `echo '${line}'; exit 18`)
      expect(facts).toMatchObject({ gpus: { failure: { status: 18, line } } })
      expect(findings).toMatchObject([{ gravity: 'risk', id: 'gpus-fail', detail: line }])
    })
  })

  it('does not compare the name of this machine with the inventory', async () => {
    const { output } = await doctor(['here', '--json'])
    expect(output).not.toContain('host-name')
  })

  it('stops when it is interrupted, and says how many hosts it examined', async () => {
    const interrupted = new AbortController()
    const silent = createServer(() => interrupted.abort()).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    writeFileSync(join(directory, 'hosts.yaml'), `hosts: { silent: { address: 127.0.0.1, port: ${port} } }\n`)
    const { code, output, errors } = await doctor([], interrupted.signal)
    silent.close()
    expect(errors).toContain('stopped; examined 0 of 1 hosts')
    expect(output).toBe('')
    expect(code).toBe(130)
  })

  it('does nothing when it is interrupted before it begins', async () => {
    expect(await doctor([], AbortSignal.abort())).toEqual({ code: 130, output: '', errors: 'muster: stopped\n' })
  })
})
