/** Commands on a real sshd whose start-up files claim that the command has started or that sudo asks. */
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { createHostExec, type ExecEnd, type ExecFile, type ExecRequest } from '../../../src/ssh/exec/host-exec.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { nobody, watchedContext } from '../../support/ssh-context.ts'

/** Everything in which a word of Muster's could stand, with all that Muster's programs say round one. */
const LIE = `for w in $({ echo "$BASH_EXECUTION_STRING"; tr '\\0' '\\n' </proc/$$/cmdline; env; } | grep -oE '[0-9a-zA-Z]{6,}'); do
  for l in '' begin deliver ready sudo; do echo "$l$w"; echo "$l\${w#ready}"; printf '%s' "$l$w" "sudo\${w#ready}" >&2; done
done
echo forged
touch ~/sourced
`
const file = (text: string): ExecFile => ({
  sizeBytes: text.length,
  async *open() {
    yield Buffer.from(text)
  },
})

describe.skipIf(!requirement('root', 'ssh', 'sshd', 'ssh-keygen', 'sudo'))('start-up files that lie', () => {
  let server: OpenSshServer
  beforeAll(async () => {
    server = await startOpenSshServer()
  })
  afterAll(() => server.stop())

  const run = async (request: ExecRequest, startUpFile: string) => {
    rmSync(join(server.directory, 'sourced'), { force: true })
    writeFileSync(join(server.directory, '.bashrc'), startUpFile)
    const exec = createHostExec({
      transports: { ssh2: createSsh2Transport() },
      hostKeys: watchedContext().hostKeys,
      credentials: nobody,
      clock: systemClock,
      token: 'c0ffee0123456789',
    })
    let stdout = ''
    let begins = 0
    const end = await new Promise<ExecEnd>((onEnd) => {
      const onBegin = () => void begins++
      exec.start(server.endpoint(), request, {
        onBegin,
        onStdout: (bytes) => {
          stdout += Buffer.from(bytes).toString()
        },
        onStderr() {},
        onEnd,
      })
    })
    expect(existsSync(join(server.directory, 'sourced'))).toBe(true)
    return { end, stdout, begins }
  }

  let asked = 0
  const sudoPassword = async () => {
    asked += 1
    return undefined
  }
  const script = { file: file('echo true\n'), interpreter: ['/bin/sh'], args: [] }
  const requests: readonly (readonly [string, ExecRequest])[] = [
    ['a command', { command: 'echo true' }],
    ['a command with variables', { command: 'echo $A', variables: { A: 'true' } }],
    ['a command with input', { command: 'cat', stdin: file('true\n') }],
    ['a script', { command: '', script }],
    ['a command through sudo', { command: 'echo true', sudoPassword }],
    ['a script with variables through sudo', { command: '', script, variables: { A: 'true' }, sudoPassword }],
  ]

  it.each(requests)('cannot pretend that the command started: %s', async (_, request) => {
    const { end, begins } = await run(request, `${LIE}exit 0\n`)
    expect({ begins, end, asked }).toEqual({
      begins: 0,
      end: { kind: 'refused', reason: expect.stringContaining('without running the command') },
      asked: 0,
    })
  })

  it.each(requests)("cannot add to the command's output: %s", async (_, request) => {
    const { end, begins, stdout } = await run(request, LIE)
    expect({ begins, end, stdout, asked }).toEqual({
      begins: 1,
      end: { kind: 'exit', code: 0 },
      stdout: 'true\n',
      asked: 0,
    })
  })
})
