/** The program as it is installed, where the machine gives it little: what the user sees of it, and how it ends. */
import { type ExecFileException, execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bundle } from '../../scripts/build.ts'
import { type EmbeddedHosts, startEmbeddedHosts } from '../../src/ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../src/terminal/local-pty.ts'
import { ROOT } from '../support/console-options.ts'
import { writeProgram } from '../support/program.ts'
import { findProgram, requirement } from '../support/requirements.ts'

/** As on a machine with many processors, where ssh -G is asked by more shells at once. */
const MANY_PROCESSORS = `--import data:text/javascript,${encodeURIComponent(`
  import os from 'node:os'
  import { syncBuiltinESMExports } from 'node:module'
  os.availableParallelism = () => 16
  syncBuiltinESMExports()`)}`

describe('the program on a machine with limits', () => {
  let directory: string
  let embedded: EmbeddedHosts
  let environment: Readonly<Record<string, string>>
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'limits-'))
    await bundle(ROOT, join(directory, 'dist'))
    symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
    cpSync(join(ROOT, 'package.json'), join(directory, 'package.json'))
    writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { "m[1-64]": { transport: local } }\n', { mode: 0o600 })
    embedded = await startEmbeddedHosts({ count: 64, spawnPty: spawnLocalPty })
    const config = join(directory, 'ssh_config')
    // The match makes each host a question of its own to ssh -G.
    writeFileSync(
      config,
      `UserKnownHostsFile ${embedded.knownHostsFile}\nMatch exec "test -n %n"\n  ServerAliveInterval 7\n`,
    )
    writeProgram(join(directory, 'ssh'), `exec ${findProgram('ssh')} -F ${config} "$@"`)
    for (const transport of ['ssh2', 'openssh']) {
      const hosts = embedded.hosts.map(({ name, address, port }) => `  ${name}: { address: ${address}, port: ${port} }`)
      const defaults = `defaults: { user: ${embedded.user}, identity_file: ${embedded.identityFile}, transport: ${transport} }`
      writeFileSync(join(directory, `${transport}.yaml`), [defaults, 'hosts:', ...hosts, ''].join('\n'))
    }
    environment = { PATH: `${directory}:${process.env.PATH}`, MUSTER_RUNTIME_DIR: directory }
  })
  afterAll(async () => {
    await embedded?.close()
    rmSync(directory, { recursive: true })
  })

  /** `script`: for sh, in which "$@" is the program. */
  const muster = async (script: string, options = '', environment: Readonly<Record<string, string>> = {}) => {
    const program = [process.execPath, join(directory, 'dist/main.js')]
    const env = {
      PATH: process.env.PATH,
      HOME: directory,
      HOSTS: join(directory, 'hosts.yaml'),
      ...(options === '' ? {} : { NODE_OPTIONS: options }),
      ...environment,
    }
    return await new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      execFile(
        '/bin/sh',
        ['-c', script, 'sh', ...program],
        { cwd: ROOT, env, timeout: 60_000 },
        (error, stdout, stderr) => resolve({ code: (error as ExecFileException | null)?.code ?? 0, stdout, stderr }),
      )
    })
  }

  it('shows no warnings of Node, and one line for each with --verbose', async () => {
    const warn = `data:text/javascript,${encodeURIComponent(`
      const { stdout } = process
      const write = stdout.write.bind(stdout)
      stdout.write = (...args) => {
        process.emitWarning('first\\nsecond', 'DeprecationWarning', 'DEP0001')
        return write(...args)
      }`)}`
    const run = '--hosts "$HOSTS" run m1 -- echo hello'
    const options = `--import ${warn}`
    expect(await muster(`"$@" ${run}`, options)).toEqual({ code: 0, stdout: 'm1: hello\n', stderr: '' })
    const { stderr } = await muster(`"$@" --verbose ${run}`, options)
    expect(stderr).toContain('muster: Node warns: DEP0001: first\\x0asecond\n')
  })

  it('works on fewer hosts at once if it may open few files, and says so', async () => {
    const { code, stdout, stderr } = await muster('ulimit -n 64; "$@" --hosts "$HOSTS" run all -- echo hello')
    expect(stderr).toMatch(
      /^muster: this process may open only 64 files: \d+ hosts? at once instead of 64\. Raise the limit: ulimit -n \d+\nmuster: 64 hosts: 64 ok\n$/,
    )
    expect(stdout.match(/^m\d+: hello$/gm)).toHaveLength(64)
    expect(code).toBe(0)
  })

  it('refuses to start if it may open too few files for a single host', async () => {
    const { code, stderr } = await muster('ulimit -n 32; "$@" --hosts "$HOSTS" run all -- echo hello')
    expect(stderr).toMatch(/too few for a single host\nRaise the limit: ulimit -n \d+\n$/)
    expect(code).toBe(2)
  })

  it('refuses to keep connections to more hosts than it may open files for', async () => {
    const { code, stderr } = await muster('ulimit -n 64; "$@" --hosts "$HOSTS" net watch all --json')
    expect(stderr).toMatch(
      /^muster: this process may open only 64 files, too few for connections to 64 hosts that stay open\n/,
    )
    expect(code).toBe(2)
  })

  it('ends with one line when its memory is used up', async () => {
    const grow = `data:text/javascript,${encodeURIComponent(`
      import { isMainThread } from 'node:worker_threads'
      const kept = []
      if (isMainThread) setInterval(() => { for (let at = 0; at < 10_000; at++) kept.push({ at }) }, 5).unref()`)}`
    const options = `--max-old-space-size=96 --import ${grow}`
    const { code, stdout, stderr } = await muster('"$@" --hosts "$HOSTS" run m1 -- sleep 60', options)
    expect(stderr).toMatch(
      /^muster: out of memory: it needs more than [\d.]+ MiB\. For twice as much: NODE_OPTIONS=--max-old-space-size=192\n$/,
    )
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  })

  it.each([
    ['hosts', 'a verb'],
    ['run m1 -- echo hello', 'what comes from a host'],
  ])('ends with one line when the system refuses it memory: %s', async (verb) => {
    const options = `--import data:text/javascript,${encodeURIComponent(`process.stdout.write = () => new ArrayBuffer(2 ** 45)`)}`
    const { code, stdout, stderr } = await muster(`"$@" --hosts "$HOSTS" ${verb}`, options)
    expect(stderr).toMatch(/^muster: out of memory: [^\n]*\n$/)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  })

  describe.skipIf(!requirement('ssh', 'namespaces'))('with a full disk', () => {
    /** In an empty directory with so much room; `before`, `after`: for sh. */
    const withRoomFor = (kib: number, command: string, after: string, before = ':') =>
      muster(
        `mkdir -p "$HOME/tiny"; exec unshare --mount sh -c '
          mount -t tmpfs -o size=${kib}k tmpfs "$HOME/tiny" && cd "$HOME/tiny" || exit
          ${before}
          "$@" --hosts "$HOME/ssh2.yaml" ${command}; code=$?; ${after}; exit $code' sh "$@"`,
        '',
        environment,
      )

    it('a recording stops at a whole line, and the watching goes on', async () => {
      const { code, stdout, stderr } = await withRoomFor(
        4,
        'net watch m[1-32] --count 1 --record samples.jsonl >/dev/null',
        'cat samples.jsonl',
      )
      expect(stderr).toBe('muster: recording stopped: cannot write samples.jsonl: no space left on the device\n')
      expect(code).toBe(1)
      for (const line of stdout.trimEnd().split('\n'))
        expect(JSON.parse(line)).toMatchObject({ cores: expect.any(Number) })
    })

    it('the queue can be read, but a job cannot be submitted', async () => {
      const submit = '"$@" --hosts "$HOME/ssh2.yaml" job submit --name fit -- true'
      const { code, stdout, stderr } = await withRoomFor(
        400,
        'job list',
        `${submit}; cat hint`,
        `XDG_STATE_HOME=$PWD; export XDG_STATE_HOME; ${submit} 2> hint; dd if=/dev/zero of=fill bs=1k 2> /dev/null`,
      )
      expect(stderr).toContain('Its disk is full, and nothing was stored. Make room and try again.')
      expect(stdout).toMatch(/\n1\tqueued\t.*\tfit\n\n1 queued; no scheduler running\n/)
      expect(code).toBe(0)
    })

    it('a host key for which there is no room is not recorded in part, and no lock is left', async () => {
      const options = `-o UserKnownHostsFile=${directory}/tiny/known -o StrictHostKeyChecking=accept-new`
      writeProgram(
        join(directory, 'accepting/ssh'),
        `exec ${findProgram('ssh')} -F ${directory}/ssh_config ${options} "$@"`,
      )
      const { code, stdout, stderr } = await withRoomFor(
        4,
        'run m1 -- true',
        'wc -c < known; ls -A',
        'PATH="$HOME/accepting:$PATH"; printf "%4050s\\n" "#" > known',
      )
      const reason = 'no space left on the device'
      expect(stderr).toBe(`muster: cannot record a host key in ${directory}/tiny/known: ${reason}\n`)
      expect([code, stdout]).toEqual([0, '4051\nknown\n'])
    })

    it('a run that cannot be recorded is not retried, and no older one in its place', async () => {
      const run = (command: string) => `"$@" --hosts "$HOME/ssh2.yaml" run ${command}`
      const { code, stdout, stderr } = await withRoomFor(
        64,
        'run m1,m2 --serial 1 -- "echo NEW; false"',
        `${run('--retry-failed')}; code=$?`,
        `export XDG_STATE_HOME="$HOME/tiny/state"; ${run('m1 -- "echo OLD; false"')} 2>/dev/null; cat /dev/zero > full 2>/dev/null`,
      )
      expect(stdout).toBe('m1: OLD\nm1: NEW\n')
      expect(stderr).toMatch(/--retry-failed will not know about this run: .*no space left/)
      expect(stderr).toMatch(/^muster: not started on m2\nmuster: there is no run to retry$/m)
      expect(code).toBe(2)
    })

    it.each([
      {
        what: 'a command whose output does not fit is stopped, its host is reported and has no files',
        run: 'm1 --out o -- "head -c 30000 /dev/zero; sleep 60"',
        reported: 'stopping the command on the hosts\nmuster: m1: cancelled\nmuster: 1 host: 1 cancelled',
      },
      {
        what: 'a host has both files or none, and the run starts on no more hosts',
        run: 'm1,m2 --serial 1 --out o -- "head -c 9000 /dev/zero; head -c 9000 /dev/zero >&2"',
        reported: '2 hosts: 1 ok, 1 cancelled\nmuster: not started on m2; --retry-failed includes them',
      },
    ])('$what', async ({ run, reported }) => {
      const { code, stdout, stderr } = await withRoomFor(16, `run ${run}`, 'ls -A o')
      const noRoom = `cannot keep the output in ${directory}/tiny/o: no space left on the device`
      const noFiles = 'no output files for m1: the output is incomplete'
      expect(stderr).toBe(`muster: ${noRoom}\nmuster: ${reported}\nmuster: ${noFiles}\n`)
      expect([code, stdout]).toEqual([1, ''])
    })
  })

  describe.skipIf(!requirement('ssh'))('with 64 hosts behind SSH', () => {
    // Between the least that Node starts with and the least for one host.
    it.each([24, 28, 32, 36])('says plainly that %d open files are too few', async (limit) => {
      const { code, stderr } = await muster(
        `ulimit -n ${limit}; "$@" --hosts "$HOME/ssh2.yaml" run all -- echo hello`,
        MANY_PROCESSORS,
        environment,
      )
      expect(stderr).toMatch(
        /^muster: (too many open files\. |this process may open only \d+ files, too few for a single host\n)Raise the limit: ulimit -n \d+\n$/,
      )
      expect(code).not.toBe(0)
    })

    const lowered = (limit: number) =>
      `muster: this process may open only ${limit} files: \\d+ hosts? at once instead of 64\\. Raise the limit: ulimit -n \\d+\n`
    const lessKept =
      'muster: not all connections are kept: the process that keeps them may open only 64 files\\. To raise that: muster hosts --persisted --stop, then ulimit -n 4096\n'

    it.each([
      ['the built-in SSH', 64, 'ssh2', '', ''],
      ["the system's ssh", 64, 'openssh', '', ''],
      ['connections that a keeper keeps', 64, 'ssh2', '--persist 60', lessKept],
      ['the built-in SSH, and nearly no files', 40, 'ssh2', '', ''],
      ["the system's ssh, and nearly no files", 40, 'openssh', '', ''],
    ])('works on fewer hosts at once and says so: %s', async (_, limit, transport, options, warning) => {
      const command = `"$@" --hosts "$HOME/${transport}.yaml" ${options} run all -- echo hello`
      const { code, stdout, stderr } = await muster(`ulimit -n ${limit}; ${command}`, MANY_PROCESSORS, environment)
      if (options !== '') await muster('"$@" hosts --persisted --stop', '', environment)
      expect(stderr).toMatch(new RegExp(`^${lowered(limit)}${warning}muster: 64 hosts: 64 ok\n$`))
      expect(stdout.match(/^m\d+: hello$/gm)).toHaveLength(64)
      expect(code).toBe(0)
    })
  })
})
