/** `muster launch check` where a host answers in a way that nobody expects; this machine is the host. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runMuster } from '../../support/run-muster.ts'

const HOSTS = `cluster: check
hosts:
  here: { transport: local, resources: { cpu: 4, gpu: 1, memory: 1GiB } }
`
/** A program that prints this. */
const program = (text: string, code: number) => `#!/bin/sh\nprintf '${text}'\nexit ${code}\n`

describe('muster launch check', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-check-'))
    mkdirSync(join(directory, 'home'))
    writeFileSync(join(directory, 'hosts.yaml'), HOSTS)
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  /** With these programs first in PATH. */
  const check = async (programs: Readonly<Record<string, string>>, command: string) => {
    const bin = mkdtempSync(join(directory, 'bin-'))
    for (const [name, text] of Object.entries({ torchrun: program('', 0), ...programs }))
      writeFileSync(join(bin, name), text, { mode: 0o755 })
    const environment = {
      ...process.env,
      HOME: join(directory, 'home'),
      XDG_STATE_HOME: join(directory, 'state'),
      PATH: `${bin}:${process.env.PATH}`,
    }
    return await runMuster(['launch', 'check', 'torchrun', '--on', 'here', '--gpu', '1', '--', command], {
      directory,
      environment,
    })
  }

  it('shows why nvidia-smi fails, with its control characters escaped', async () => {
    const broken = { 'nvidia-smi': program('NVML:\\r \\033[31mdead\\n', 9) }
    const { output, exitCode } = await check(broken, 'echo hi')
    expect(output).toMatch(/^blocker +here: .*nvidia-smi: NVML:\\x0d \\x1b\[31mdead/m)
    expect(output).toMatch(/^here: blocked$/m)
    expect(exitCode).toBe(1)
  })

  it('takes an answer that it could not read for a blocker', async () => {
    // More facts than are kept.
    const facts = Array.from({ length: 70 }, (_, index) => `fact${index} 1\\n`).join('')
    const flood = { cksum: program(facts, 0), 'nvidia-smi': program('0, GPU-a\\n', 0), 'job.sh': program('', 0) }
    const { output, exitCode } = await check(flood, 'job.sh')
    expect(output).toMatch(/^blocker +here: its answer could not be read$/m)
    expect(output).toMatch(/^here: blocked$/m)
    expect(exitCode).toBe(1)
  })
})
