/** Hosts that say what is not so, or too much: to a driver, to the line of one host, and through a real sshd. */

import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { type DriverEvent, driveJobs, LEASE_MS } from '../../../src/scheduler/jobs/driver.ts'
import type { DriverHost } from '../../../src/scheduler/jobs/driver-host.ts'
import { HostClock, HostLine, type JobHosts } from '../../../src/scheduler/jobs/host-line.ts'
import type { JobSpec } from '../../../src/scheduler/jobs/job.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { ScriptShell } from '../../../src/ssh/exec/script-shell.ts'
import { createHostKeyVerifier } from '../../../src/ssh/known-hosts/verifier.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { bundleKeyOf } from '../../support/bundle-key.ts'
import { type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { nobody } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = process.platform === 'linux' && requirement('setsid', 'mkfifo')
const canServe = canRun && requirement('sshd', 'bash')

const KEY = 'abc-1-1-0'
const start = (command: string) =>
  ({ kind: 'start', key: KEY, run: { command, directory: undefined, environment: {} } }) as const
const only = (...orders: readonly ReturnType<typeof start>[]) => ({ orders, wantsFacts: false, besides: '' })
/** What a start-up file that knows the protocol, but not the mark, may print: each word of it, and at any time. */
const LIES = ['', `+${KEY} exit 9`, `${KEY} exit 9`, 'end 1', 'end 2', 'trouble lies', 'host 999 999'].join('\\n')

describe.skipIf(!canRun)('a host that prints unexpected text', () => {
  let directory: string
  let lines: HostLine[]
  let notices: string[]

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-hostile-'))
    notices = []
    lines = []
  })
  afterEach(() => {
    for (const line of lines) line[Symbol.dispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  /** `before`: for sh, ahead of the shell that is spoken to. */
  const shellAfter = (before: string): JobHosts => ({
    open(_, { onText, onEnd }) {
      const environment = { PATH: process.env.PATH, HOME: directory }
      const own = spawn('sh', ['-c', `${before}\nexec sh -s`], { env: environment, stdio: ['pipe', 'pipe', 'ignore'] })
      own.stdout.setEncoding('utf8').on('data', onText)
      own.on('close', () => onEnd('it ended'))
      return {
        write: (text) => void own.stdin.write(text),
        [Symbol.dispose]: () => {
          own.stdin.end()
          own.stdout.destroy()
        },
      }
    },
  })
  const lineOver = (port: JobHosts): HostLine => {
    const onNotice = (text: string) => void notices.push(...text.split('\n'))
    const line = new HostLine({
      host: 'a',
      port,
      clock: systemClock,
      hostClock: new HostClock(),
      onNotice,
      onLost() {},
    })
    lines.push(line)
    return line
  }

  it('is not believed what its start-up files print, before and during rounds', async () => {
    const line = lineOver(
      shellAfter(`printf '${LIES}\\n'; ( while [ ! -e "$HOME/over" ]; do printf '${LIES}'; sleep 0.02; done ) &`),
    )
    const first = await line.round({
      ...only(start('while [ ! -e go ]; do sleep 0.05; done; exit 3')),
      wantsFacts: true,
    })
    expect(first).toMatchObject({ kind: 'answer', text: expect.not.stringMatching(/lies|999|exit/) })
    await waitUntil(() => notices.length === 1, 'the bundle to begin')
    const next = await line.round({ orders: [{ kind: 'check', key: KEY }], wantsFacts: false, besides: '' })
    expect(next).toMatchObject({ kind: 'answer', text: expect.stringContaining(`${KEY} begun`) })
    writeFileSync(join(directory, 'go'), '')
    await waitUntil(() => notices.length === 2, 'the end of the bundle')
    writeFileSync(join(directory, 'over'), '')
    expect(notices).toEqual([expect.stringMatching(/^abc-1-1-0 begun/), expect.stringMatching(/^abc-1-1-0 exit 3/)])
  })

  it('is disconnected when it prints without end, and the reason says so', async () => {
    const line = lineOver(shellAfter('( exec yes ) &'))
    const reasons: string[] = []
    await waitUntil(async () => {
      const result = await line.round(only())
      if (result.kind === 'trouble') reasons.push(result.reason)
      return reasons.length === 3
    }, 'it to be cut off, again and again')
    for (const reason of reasons) expect(reason).toMatch(/^disconnected: it printed more than 4\.0 MiB$/)
  })

  it('is disconnected as well when it starts to do so between rounds', async () => {
    const line = lineOver(shellAfter('( while [ ! -e "$HOME/go" ]; do sleep 0.02; done; exec yes ) &'))
    expect(await line.round(only())).toMatchObject({ kind: 'answer' })
    writeFileSync(join(directory, 'go'), '')
    await waitUntil(() => line.isNew, 'it to be cut off')
    expect(await line.round(only())).toMatchObject({ kind: 'trouble', reason: expect.stringContaining('disconnected') })
  })

  it('may print a line for each order, however many', async () => {
    const line = lineOver(shellAfter(''))
    const orders = Array.from({ length: 10_000 }, (_, index) => ({ kind: 'check', key: `abc-${index}-1-0` }) as const)
    const answer = await line.round({ orders, wantsFacts: false, besides: '' })
    expect(answer.kind === 'answer' && answer.text.match(/^abc-\d+-1-0 none$/gm)).toHaveLength(10_000)
  })

  describe('to the driver', () => {
    const HOSTS: readonly DriverHost[] = ['a', 'b'].map((name) => ({
      ...{ name, address: name, cpuMilli: 8000, memoryBytes: 2 ** 30, gpuCount: 0, labels: {}, custom: undefined },
    }))
    const on = (host: string, command: string): JobSpec => ({
      ...{ name: command, command, environment: {}, bundles: 1, strategy: 'PACK', retries: 1, isPreemptible: false },
      request: {
        ...{ cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
        selectors: [{ label: 'host', is: 'in', values: [host] }],
      },
    })

    it('reports on its own bundles alone: what it says of others changes nothing, even with the mark', async () => {
      using store = new JobStore(join(directory, 'queue.db'))
      const submit = (spec: JobSpec) =>
        store.submit({ spec, user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}] }, Date.now())[0] ?? 0
      const noted = 'echo $MUSTER_ATTEMPT >>"$OUT/ran"; while [ ! -e "$OUT/go" ]; do sleep 0.05; done'
      const [own, foreign] = [submit(on('a', noted)), submit(on('b', noted))]
      let told = 0
      const port: JobHosts = {
        open(host, { onText, onEnd }) {
          const home = join(directory, host)
          mkdirSync(home, { recursive: true })
          const env = { PATH: process.env.PATH, HOME: home, OUT: directory }
          const child = spawn('sh', ['-s'], { env, stdio: ['pipe', 'pipe', 'ignore'] })
          let mark = ''
          const lie = () => {
            const key = bundleKeyOf(store, own)
            for (const word of ['begun', 'exit 0', 'exit 7', 'gone', 'none'])
              onText(`${mark}+${key} ${word}\n${mark}${key} ${word}\n`)
            told++
          }
          child.stdout.setEncoding('utf8').on('data', (text: string) => {
            onText(text)
            if (host === 'b') lie()
          })
          child.on('close', () => onEnd('it ended'))
          return {
            write: (text) => {
              mark = /mark=([0-9a-f]+);/.exec(text)?.[1] ?? mark
              child.stdin.write(text)
            },
            [Symbol.dispose]: () => child.stdin.end(),
          }
        },
      }
      const lease = store.lease.take('test', Date.now(), LEASE_MS)
      if (lease === undefined) throw new Error('somebody else drives')
      const events: DriverEvent[] = []
      const driving = driveJobs({
        ...{ store, lease, hosts: HOSTS, port, clock: systemClock, isPreempting: false, isUntilEmpty: true },
        signal: new AbortController().signal,
        onEvent: (event) => void events.push(event),
      })
      const kinds = () => [own, foreign].map((id) => store.get(id)?.state.kind)
      await waitUntil(() => kinds().every((kind) => kind === 'running') && told > 5, 'both to run, and lies to be told')
      expect(store.get(own)).toMatchObject({ attempt: 1, state: { kind: 'running' } })
      writeFileSync(join(directory, 'go'), '')
      await driving
      expect(kinds()).toEqual(['done', 'done'])
      expect(readFileSync(join(directory, 'ran'), 'utf8')).toBe('1\n1\n')
    })
  })
})

describe.skipIf(!canServe)('the shell for rounds over a real sshd', () => {
  let server: OpenSshServer
  let reasons: string[]

  beforeEach(async () => {
    server = await startOpenSshServer()
    reasons = []
  })
  afterEach(async () => await server.stop())

  const port = (): JobHosts => ({
    open(_, { onText, onEnd }) {
      const shell = new ScriptShell(
        server.endpoint(),
        {
          transports: { ssh2: createSsh2Transport() },
          ...{ hostKeys: createHostKeyVerifier(), credentials: nobody, clock: systemClock, token: 'c0ffee' },
        },
        {
          onStdout: (bytes) => onText(Buffer.from(bytes).toString()),
          onEnd: (reason) => {
            reasons.push(reason)
            onEnd(reason)
          },
        },
      )
      return shell
    },
  })
  const withLine = async (use: (line: HostLine, notices: string[]) => Promise<void>) => {
    const notices: string[] = []
    const onNotice = (text: string) => void notices.push(...text.split('\n'))
    using line = new HostLine({
      host: 'a',
      port: port(),
      clock: systemClock,
      hostClock: new HostClock(),
      onNotice,
      onLost() {},
    })
    await use(line, notices)
  }

  it('ignores what ~/.bashrc prints from its command line, its environment and the protocol', async () => {
    const all = `{ echo "$BASH_EXECUTION_STRING"; tr '\\0' '\\n' </proc/$$/cmdline; env; } | grep -oE '[0-9a-z]{6,}'`
    writeFileSync(
      join(server.directory, '.bashrc'),
      `for w in '' $(${all}); do for l in '+${KEY} exit 9' '${KEY} exit 9' 'end 1' 'trouble lies'; do echo "$w"; echo "$w$l"; done; done
touch ~/sourced`,
    )
    await withLine(async (line, notices) => {
      const answer = await line.round(only(start('exit 3')))
      expect(existsSync(join(server.directory, 'sourced'))).toBe(true)
      expect(answer).toMatchObject({ kind: 'answer', text: expect.not.stringMatching(/lies|exit 9/) })
      await waitUntil(() => notices.length === 2, 'both words of the bundle')
      expect(notices[1]).toMatch(/^abc-1-1-0 exit 3/)
    })
  })

  it('gives up early on a ~/.bashrc that prints without end', async () => {
    writeFileSync(join(server.directory, '.bashrc'), 'yes\n')
    await withLine(async (line) => {
      expect(await line.round(only())).toMatchObject({
        kind: 'trouble',
        reason: expect.stringMatching(/^the login shell printed more than 16.0 MiB before it started the command/),
      })
    })
  })
})
