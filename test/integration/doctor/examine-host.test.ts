/** The examination over a real sshd on loopback: start-up files, clocks, channels, and what is left behind. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { createDoctorHost } from '../../../src/cli/doctor/doctor.ts'
import { type Examination, examineHost } from '../../../src/ops/doctor/examine-host.ts'
import { createOpensshTransport } from '../../../src/ssh/openssh/openssh-transport.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import type { Transport } from '../../../src/ssh/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { writeProgram } from '../../support/program.ts'
import { requirement } from '../../support/requirements.ts'
import { watchedContext } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'

const REAL_DATE = '/usr/bin/date'

/** Of these only bash on Linux is known to read ~/.bashrc for sshd's commands, and only GNU date takes `-d`. */
function hasBashOfLinux(): boolean {
  if (process.platform === 'linux' && /\/bash$/.test(userInfo().shell ?? '')) return true
  process.stderr.write('skipped: this needs Linux and bash as the login shell\n')
  return false
}

describe.skipIf(!requirement('sshd', 'bash') || !hasBashOfLinux())('the examination of a host', () => {
  let server: OpenSshServer
  afterEach(async () => await server?.stop())

  async function examine(
    options: { limitFactor?: number; signal?: AbortSignal } = {},
    transport: Transport = createSsh2Transport(),
  ): Promise<Examination> {
    const connection = await transport.connect(server.endpoint(), watchedContext())
    try {
      // No limit is reached unless the test asks for it.
      const { signal = new AbortController().signal, limitFactor = 10 } = options
      return await examineHost(createDoctorHost(connection, systemClock), { signal, mark: 'mark', limitFactor })
    } finally {
      connection.close()
    }
  }

  /** Programs in front of the system's own. */
  async function startWith(programs: Readonly<Record<string, string>>, config: readonly string[] = []) {
    server = await startOpenSshServer({ config })
    const directory = join(server.directory, 'bin')
    mkdirSync(directory)
    for (const [name, script] of Object.entries(programs)) {
      writeProgram(join(directory, name), script)
    }
    // Its home is the server's directory, and bash reads this for commands of sshd.
    writeFileSync(join(server.directory, '.bashrc'), `PATH=${directory}:$PATH\n`)
  }

  it('finds nothing wrong with a healthy host, through one channel at a time', async () => {
    await startWith({}, ['MaxSessions 1'])
    const { startup, clock, facts, factsEnd, largeAnswer } = await examine()
    expect(startup).toMatchObject({ end: { kind: 'exit', code: 0 }, stdout: '', stderr: '' })
    expect(Math.abs(clock?.offsetMs ?? Number.NaN)).toBeLessThanOrEqual(clock?.uncertaintyMs ?? 0)
    expect(factsEnd).toBeUndefined()
    expect(facts).toMatchObject({ hanging: [], system: { home: server.directory } })
    expect(largeAnswer).toMatchObject({ arrivedBytes: 262_144, end: { kind: 'exit', code: 0 } })
  })

  it.skipIf(!requirement('ssh'))("works the same through the system's ssh", async () => {
    await startWith({})
    using openssh = createOpensshTransport({ spawnPty: spawnLocalPty })
    const { startup, clock, facts, largeAnswer } = await examine({}, openssh)
    expect(startup).toMatchObject({ end: { kind: 'exit', code: 0 }, stdout: '', stderr: '' })
    expect(Math.abs(clock?.offsetMs ?? Number.NaN)).toBeLessThanOrEqual(clock?.uncertaintyMs ?? 0)
    expect(facts?.hanging).toEqual([])
    expect(largeAnswer?.arrivedBytes).toBe(262_144)
  })

  it('reads a wrong clock in fractions of a second if date has them', async () => {
    await startWith({ date: `exec ${REAL_DATE} -d '3 seconds' "$@"` })
    const { clock } = await examine()
    expect(Math.abs((clock?.offsetMs ?? 0) - 3_000)).toBeLessThanOrEqual(clock?.uncertaintyMs ?? 0)
  })

  it.skipIf(!requirement('perl'))('reads it with perl if date has no fractions', async () => {
    await startWith({
      date: `case $1 in *%N) echo "$(${REAL_DATE} +%s)N";; *) exec ${REAL_DATE} "$@";; esac`,
      perl: `printf '%s\\n' "$*" >> ~/perl; exec /usr/bin/perl "$@"`,
    })
    const { clock } = await examine()
    expect(Math.abs(clock?.offsetMs ?? Number.NaN)).toBeLessThanOrEqual(clock?.uncertaintyMs ?? 0)
    expect(readFileSync(join(server.directory, 'perl'), 'utf8')).toContain('time * 1e9')
  })

  it('reads it at the beginning of a second if nothing there has fractions', async () => {
    const date = `case $1 in *%N) echo "$(${REAL_DATE} +%s)N";; *) exec ${REAL_DATE} -d '-7 seconds' "$@";; esac`
    await startWith({ date, perl: 'exit 127' })
    const { clock } = await examine()
    // On a busy machine the beginning is seen late.
    expect(Math.abs((clock?.offsetMs ?? 0) + 7_000)).toBeLessThan(3_000)
  })

  it('notices what start-up files print, and is not misled by it', async () => {
    await startWith({})
    const noise = 'printf "tick\\nwelcome"; echo oh >&2'
    writeFileSync(join(server.directory, '.bashrc'), `${noise}\n`)
    const { startup, clock, facts, largeAnswer } = await examine()
    expect(startup).toMatchObject({ stdout: 'tick\nwelcome', stderr: 'oh' })
    expect(clock?.offsetMs).toBeDefined()
    expect(facts?.hanging).toEqual([])
    expect(largeAnswer?.arrivedBytes).toBeGreaterThan(262_144)
  })

  it('does not wait the full time for a large answer that does not arrive', async () => {
    await startWith({ dd: 'exec cat > /dev/null' })
    const { largeAnswer } = await examine({ limitFactor: 2 })
    expect(largeAnswer).toMatchObject({ arrivedBytes: 0, end: { kind: 'timeout' } })
    const connection = await createSsh2Transport().connect(server.endpoint(), watchedContext())
    const { signal } = new AbortController()
    const silent = createDoctorHost(connection, systemClock).exec('cat', {
      timeoutMs: 600_000,
      silenceMs: 200,
      signal,
    })
    expect((await silent).end).toEqual({ kind: 'timeout' })
    connection.close()
  })

  it('stops start-up files that wait for something, and leaves none of them behind', async () => {
    await startWith({})
    writeFileSync(join(server.directory, '.bashrc'), 'read -r answer\n')
    const examination = await examine({ limitFactor: 0.05 })
    expect(examination).toEqual({
      startup: { end: { kind: 'timeout' }, durationMs: expect.any(Number), stdout: '', stderr: '' },
    })
    await waitUntil(() => server.children().length === 0, 'the login shell to end')
  })

  it('cuts off a login shell that prints without end', async () => {
    await startWith({}, ['ForceCommand yes'])
    expect((await examine()).startup.end).toEqual({ kind: 'flood', moreThanBytes: 2 ** 20 })
    await waitUntil(() => server.children().length === 0, 'the login shell to end')
  })

  it('gives up on a login shell that runs no command', async () => {
    await startWith({}, ['ForceCommand echo not available; exit 3'])
    const { startup, ...rest } = await examine()
    expect(startup).toMatchObject({ end: { kind: 'exit', code: 3 }, stdout: 'not available' })
    expect(rest).toEqual({})
  })

  it('stops soon after it is cancelled', async () => {
    await startWith({})
    writeFileSync(join(server.directory, '.bashrc'), 'read -r answer\n')
    const { startup } = await examine({ signal: AbortSignal.timeout(100) })
    expect(startup.end).toEqual({ kind: 'cancelled' })
  })

  it('reports a broken connection', async () => {
    await startWith({})
    writeFileSync(join(server.directory, '.bashrc'), 'kill -9 $PPID\n')
    const { startup } = await examine()
    expect(startup.end.kind).toBe('lost')
  })
})
