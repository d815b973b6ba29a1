import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { Secret } from '../../../src/base/secret.ts'
import type { Endpoint } from '../../../src/inventory/host.ts'
import {
  type EmbeddedHosts,
  embeddedEndpoints,
  startEmbeddedHosts,
} from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import {
  createHostExec,
  type ExecEnd,
  type ExecFile,
  type ExecRequest,
  type RunningExec,
} from '../../../src/ssh/exec/host-exec.ts'
import { createHostKeyVerifier } from '../../../src/ssh/known-hosts/verifier.ts'
import { createLocalTransport } from '../../../src/ssh/local/local-transport.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { nobody } from '../../support/ssh-context.ts'
import { TcpProxy, through } from '../../support/tcp-proxy.ts'
import { waitUntil } from '../../support/wait-until.ts'

type Execution = {
  readonly running: RunningExec
  readonly stdout: () => Buffer
  readonly stderr: () => string
  readonly stderrBytes: () => Buffer
}

function startExec(
  endpoint: Endpoint,
  request: ExecRequest,
  options: { environment?: Record<string, string>; beatMs?: number } = {},
): Execution & { readonly begun: Promise<void>; readonly ended: Promise<ExecEnd> } {
  const stdout: Uint8Array[] = []
  const stderr: Uint8Array[] = []
  const begun = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<ExecEnd>()
  const exec = createHostExec({
    transports: {
      ssh2: createSsh2Transport(),
      local: createLocalTransport({ spawnPty: spawnLocalPty, environment: { ...process.env, ...options.environment } }),
    },
    hostKeys: createHostKeyVerifier(),
    credentials: nobody,
    clock: systemClock,
    token: 'c0ffee',
    ...(options.beatMs === undefined ? {} : { beatMs: options.beatMs }),
  })
  const running = exec.start(endpoint, request, {
    onBegin: begun.resolve,
    onStdout: (bytes) => stdout.push(bytes),
    onStderr: (bytes) => stderr.push(bytes),
    onEnd: ended.resolve,
  })
  return {
    running,
    begun: begun.promise,
    ended: ended.promise,
    stdout: () => Buffer.concat(stdout),
    stderr: () => Buffer.concat(stderr).toString(),
    stderrBytes: () => Buffer.concat(stderr),
  }
}

const fileOf = (content: string | Uint8Array): ExecFile => ({
  sizeBytes: Buffer.byteLength(content),
  async *open() {
    yield Buffer.from(content)
  },
})

/** Through a file, so that stderr may be a socket. */
const KEEP_AND_PRINT = 'f=$(mktemp); cat >$f; cat $f; cat $f >&2; rm $f'

/** A number that only one test's processes carry in their command lines. */
let seed = 100_000 + Math.floor(Math.random() * 800_000)

function commandLines(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
      } catch {
        return ''
      }
    })
}

describe.skipIf(process.platform !== 'linux')('a command on a host', () => {
  let embedded: EmbeddedHosts
  let directory: string
  let number: number
  const local = endpointOf('m1', { transport: 'local', user: 'ann' })
  const places = ['local', 'ssh2'] as const
  const at = (place: (typeof places)[number]): Endpoint => {
    const [endpoint] = embeddedEndpoints(embedded)
    if (endpoint === undefined) throw new Error('no host')
    return place === 'local' ? local : endpoint
  }
  const isLeft = () => commandLines().some((line) => line.includes(String(number)))

  beforeAll(async () => {
    embedded = await startEmbeddedHosts({ count: 1, spawnPty: spawnLocalPty })
    directory = mkdtempSync(join(tmpdir(), 'run-test-'))
  })

  afterAll(async () => {
    await embedded.close()
    rmSync(directory, { recursive: true })
  })

  beforeEach(() => {
    seed += 1
    number = seed
  })

  afterEach(async () => {
    await waitUntil(() => !isLeft(), 'the end of every process')
  })

  it.each(places)('reports its exit code, its signal and its output separately (%s)', async (place) => {
    const exit = startExec(at(place), { command: 'echo out; echo err >&2; exit 7' })
    expect(await exit.ended).toEqual({ kind: 'exit', code: 7 })
    expect([exit.stdout().toString(), exit.stderr()]).toEqual(['out\n', 'err\n'])
    const signal = startExec(at(place), { command: 'kill -KILL $$' })
    expect(await signal.ended).toEqual({ kind: 'signal', signal: 'SIGKILL' })
  })

  it('delivers any bytes of stdout and stderr unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 3000 }), async (bytes) => {
        const echo = startExec(at('ssh2'), { command: KEEP_AND_PRINT, stdin: fileOf(bytes) })
        await echo.ended
        expect(echo.stdout()).toEqual(Buffer.from(bytes))
        expect(echo.stderrBytes()).toEqual(Buffer.from(bytes))
      }),
      { numRuns: 5 },
    )
  })

  it.each(places)('that prints without end is held back while nothing reads it (%s)', async (place) => {
    const run = startExec(at(place), { command: `exec yes ${number}` })
    await run.begun
    run.running.pause()
    // What was on its way arrives; then the command stands still in a write, and prints no more.
    const blocked = () => commandLines().some((line) => line.startsWith(`yes ${number}`)) && !isPrinting()
    let seen = -1
    const isPrinting = () => {
      const before = seen
      seen = run.stdout().length
      return before !== seen
    }
    await waitUntil(blocked, 'the command to stand still')
    expect(run.stdout().length).toBeLessThan(4 * 1024 * 1024)
    const stoodAt = run.stdout().length
    run.running.resume()
    await waitUntil(() => run.stdout().length > stoodAt + 1024 * 1024, 'more of it')
    run.running.stop()
    await run.ended
  })

  it('reads nothing if no stdin is given', async () => {
    const cat = startExec(at('ssh2'), { command: 'cat; echo end' })
    expect(await cat.ended).toEqual({ kind: 'exit', code: 0 })
    expect(cat.stdout().toString()).toBe('end\n')
  })

  it.each(places)('gets a long stdin whole, also if it does not read it (%s)', async (place) => {
    const content = Buffer.alloc(3_000_000, 'muster\n')
    const count = startExec(at(place), { command: 'wc -c', stdin: fileOf(content) })
    expect(await count.ended).toEqual({ kind: 'exit', code: 0 })
    expect(count.stdout().toString().trim()).toBe('3000000')
    const ignoring = startExec(at(place), { command: 'exit 3', stdin: fileOf(content) })
    expect(await ignoring.ended).toEqual({ kind: 'exit', code: 3 })
  })

  it.each(places)('is a local script with its interpreter, arguments and stdin (%s)', async (place) => {
    const script = fileOf('print "<@ARGV>", <STDIN>')
    const request = {
      command: '',
      script: { file: script, interpreter: ['/usr/bin/perl'], args: ["it's", '', '$HOME !'] },
      stdin: fileOf(`line ${number}\n`),
    }
    const run = startExec(at(place), request, { environment: { TMPDIR: directory } })
    expect(await run.ended).toEqual({ kind: 'exit', code: 0 })
    expect(run.stdout().toString()).toBe(`<it's  $HOME !>line ${number}\n`)
    await waitUntil(
      () => readdirSync(directory).every((name) => !name.startsWith('muster.')),
      'the removal of the script',
    )
  })

  it.each(places)("creates files with its user's umask, also when files come with it (%s)", async (place) => {
    const umaskOf = async (request: Partial<ExecRequest>) => {
      const run = startExec(at(place), { command: 'umask', ...request }, { environment: { TMPDIR: directory } })
      expect(await run.ended).toEqual({ kind: 'exit', code: 0 })
      return run.stdout().toString().trim()
    }
    const wanted = await umaskOf({})
    expect(wanted).not.toMatch(/077$/)
    const script = { file: fileOf('umask\n'), interpreter: ['/bin/sh'], args: [] }
    const others = [{ isForSh: true }, { stdin: fileOf('x') }, { script }, { script, stdin: fileOf('x') }]
    for (const request of others) expect(await umaskOf(request)).toBe(wanted)
  })

  describe('with variables', () => {
    const value = `it's "$HOME"\n\\ é ${Math.random()} `
    /** What a process shows to others: its command line and its environment. */
    const shown = () =>
      readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
        .flatMap((pid) =>
          ['cmdline', 'environ'].flatMap((file) => {
            try {
              return readFileSync(`/proc/${pid}/${file}`, 'utf8').includes(value) ? [`${pid} ${file}`] : []
            } catch {
              return []
            }
          }),
        )
    const variables = { SECRET: value, v: '1', d: '2', e: '3', n: '4' }
    const text = 'printf %s "$SECRET:$v$d$e$n:"; echo $$ >&2; read -r line; printf %s "$line"; exec sleep 1000'
    const script = { file: fileOf(text), interpreter: ['/bin/sh'], args: [] }
    const requests: readonly (readonly [string, Partial<ExecRequest>])[] = [
      ['a command', { command: text }],
      ['a command for sh', { command: text, isForSh: true }],
      ['a command with stdin', { command: text, stdin: fileOf('input\n') }],
      ['a script', { script }],
      ['a script with stdin', { script, stdin: fileOf('input\n') }],
    ]
    const check = async (run: ReturnType<typeof startExec>, wanted: string) => {
      try {
        await waitUntil(() => run.stdout().toString() === wanted && run.stderr().endsWith('\n'), 'the command')
        const pid = run.stderr().trim().split('\n').at(-1) ?? ''
        // A new program has its name before its variables can be read.
        const isSleep = () => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n'
        await waitUntil(() => isSleep() && readFileSync(`/proc/${pid}/environ`).length > 0, 'the last of it')
        // The command's own, and no other: not the wrapper, its watcher, sudo or ssh.
        expect(shown()).toEqual([`${pid} environ`])
      } finally {
        run.running.stop()
        await run.ended
      }
    }

    it.each(requests)('shows their values in no process but the command: %s', async (_, request) => {
      for (const place of places) {
        // What the login exports under the wrapper's own names gets no value either.
        const run = startExec(at(place), { command: '', variables, ...request }, { environment: { e: 'x', v: 'x' } })
        await check(run, `${value}:1234:${request.stdin === undefined ? '' : 'input'}`)
      }
    })
  })

  it.each(places)('is stopped with one TERM for each process (%s)', async (place) => {
    const file = join(directory, `signals-${place}`)
    const counts = (name: string) => `trap "echo ${name} >>${file}" TERM; echo up; while :; do sleep 0.1; done`
    const command = `perl -e 'setpgrp; exec @ARGV' sh -c '${counts('outside')}' & ${counts('inside')}`
    const run = startExec(at(place), { command })
    await waitUntil(() => run.stdout().toString() === 'up\nup\n', 'both')
    run.running.stop()
    expect(await run.ended).toMatchObject({ kind: 'signal' })
    expect(readFileSync(file, 'utf8').trim().split('\n').sort()).toEqual(['inside', 'outside'])
  })

  it.each(places)('is stopped with all its children, the stubborn ones after a delay (%s)', async (place) => {
    const run = startExec(at(place), {
      command: `sleep ${number} & (trap '' TERM; sleep ${number}) & trap '' TERM; sleep ${number}; sleep ${number}`,
    })
    await run.begun
    await waitUntil(() => commandLines().some((line) => line.startsWith(`sleep ${number}`)), 'the command')
    run.running.stop()
    expect(await run.ended).toMatchObject({ kind: 'signal' })
  })

  it.each(places)('is stopped with a child in another group whose name holds line breaks (%s)', async (place) => {
    const program = join(directory, `two\nlines ${place}`)
    symlinkSync('/bin/sleep', program)
    const run = startExec(at(place), { command: `set -m; '${program}' ${number} & echo up; wait` })
    await waitUntil(() => run.stdout().toString() === 'up\n', 'the command')
    await waitUntil(() => commandLines().some((line) => line.startsWith(program)), 'its child')
    run.running.stop()
    expect(await run.ended).toMatchObject({ kind: 'signal' })
  })

  it.each(places)('is stopped when nothing listens any more (%s)', async (place) => {
    const run = startExec(at(place), { command: `trap '' HUP TERM; sleep ${number}; sleep ${number}` })
    await run.begun
    run.running.abandon()
    await waitUntil(() => !isLeft(), 'the end of the command')
  })

  it('is stopped when the connection breaks', async () => {
    const run = startExec(at('ssh2'), { command: `sleep ${number}` })
    await run.begun
    embedded.hosts[0]?.dropConnections()
    expect(await run.ended).toMatchObject({ kind: 'unreachable', reason: expect.stringMatching(/^lost: /) })
  })

  it('is stopped when the link is silent, though no connection has broken', async () => {
    await using proxy = await TcpProxy.to(at('ssh2').port)
    const run = startExec(through(proxy, at('ssh2')), { command: `sleep ${number}` }, { beatMs: 300 })
    await waitUntil(() => commandLines().some((line) => line.startsWith('timeout 1 dd')), 'the first beat')
    proxy.stall()
    await waitUntil(() => !isLeft(), 'the end of the command')
    run.running.abandon()
  })

  it('continues while heartbeats arrive', async () => {
    // Longer than the host waits for a beat.
    const run = startExec(at('ssh2'), { command: 'sleep 7; echo well' }, { beatMs: 2_000 })
    expect(await run.ended).toEqual({ kind: 'exit', code: 0 })
    expect(run.stdout().toString()).toBe('well\n')
  })

  describe('through sudo', () => {
    /** As sudo -S does it: a prompt on stderr, a line from stdin, three tries. */
    const SUDO = `#!/bin/sh
[ "$1 $2" = "-S -p" ] || exit 9
for try in 1 2 3; do
  printf %s "$3" >&2
  read -r word
  [ "$word" = sesame ] && { shift 4; umask 027; exec "$@"; }
  echo "Sorry, try again." >&2
done
exit 1
`
    const run = (password: string | undefined, request: Partial<ExecRequest> = {}) => {
      const file = join(directory, 'sudo')
      writeFileSync(file, SUDO)
      chmodSync(file, 0o755)
      return startExec(
        local,
        {
          command: 'echo done',
          sudoPassword: async () => (password === undefined ? undefined : new Secret(password)),
          ...request,
        },
        { environment: { PATH: `${directory}${delimiter}${process.env.PATH}` } },
      )
    }

    it('gets the password at its prompt, which is not shown', async () => {
      const well = run('sesame')
      expect(await well.ended).toEqual({ kind: 'exit', code: 0 })
      expect([well.stdout().toString(), well.stderr()]).toEqual(['done\n', ''])
    })

    it('gets files after the password', async () => {
      const well = run('sesame', { command: 'cat', stdin: fileOf('input\n') })
      expect(await well.ended).toEqual({ kind: 'exit', code: 0 })
      expect(well.stdout().toString()).toBe('input\n')
    })

    it('shows the values of variables to no process but the command, sudo included', async () => {
      const value = `secret ${Math.random()}`
      const words = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
      for (const request of [
        { command: 'echo "$S $$"; exec sleep 1000' },
        { stdin: fileOf('x'), command: 'echo "$S $$"; exec sleep 1000' },
      ]) {
        const well = run('sesame', { variables: { S: value }, ...request })
        await waitUntil(() => well.stdout().toString().endsWith('\n'), 'the command')
        const pid = well.stdout().toString().trim().split(' ').at(-1) ?? ''
        // A new program has its name before its variables can be read.
        const isSleep = () => readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n'
        await waitUntil(() => isSleep() && readFileSync(`/proc/${pid}/environ`).length > 0, 'the last of it')
        const seen = words().filter((name) =>
          ['cmdline', 'environ'].some((file) => {
            try {
              return readFileSync(`/proc/${name}/${file}`, 'utf8').includes(value)
            } catch {
              return false
            }
          }),
        )
        expect([well.stdout().toString(), seen]).toEqual([`${value} ${pid}\n`, [pid]])
        well.running.stop()
        await well.ended
      }
    })

    it("has sudo's umask, also when files come with it", async () => {
      const script = { file: fileOf('umask\n'), interpreter: ['/bin/sh'], args: [] }
      for (const request of [{}, { stdin: fileOf('x') }, { script }]) {
        const well = run('sesame', { command: 'umask', ...request })
        expect(await well.ended).toEqual({ kind: 'exit', code: 0 })
        expect(well.stdout().toString()).toBe('0027\n')
      }
    })

    it('asks once only, and a wrong password is a refusal', async () => {
      expect(await run('wrong').ended).toEqual({ kind: 'refused', reason: 'sudo did not accept the password' })
    })

    it('is refused when it cannot ask', async () => {
      expect(await run(undefined).ended).toMatchObject({ kind: 'refused', reason: expect.stringContaining('password') })
    })
  })
})
