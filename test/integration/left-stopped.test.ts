/** `muster left` where a host does not answer, and the user has seen enough. */
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, it, onTestFinished } from 'vitest'
import { runProgram } from '../../src/cli/program.ts'
import { waitUntil } from '../support/wait-until.ts'

it('shows what the other hosts have, and names the host that was not searched', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-left-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  // Takes connections, and says nothing.
  const silent = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  onTestFinished(() => void silent.close())
  const { port } = silent.address() as AddressInfo
  const hosts = `hosts: { here: { transport: local }, mute: { address: 127.0.0.1, port: ${port} } }\n`
  writeFileSync(join(directory, 'hosts.yaml'), hosts)
  mkdirSync(join(directory, '.local/state/muster/reports'), { recursive: true })
  let [out, err] = ['', '']
  const stdout = new PassThrough().on('data', (text) => (out += text))
  const stderr = Object.assign(new PassThrough(), { isTTY: true }).on('data', (text) => (err += text))
  const stop = new AbortController()
  const environment = { ...process.env, HOME: directory, XDG_STATE_HOME: join(directory, '.local/state') }
  const code = runProgram(['--connect-timeout', '3600', 'left', '--area', 'records'], {
    ...{ stdin: new PassThrough(), stdout, stderr, environment, workingDirectory: directory },
    ...{ signal: stop.signal, now: Date.now },
  })
  await waitUntil(() => err.includes('searched 1 of 2, waiting for mute'), 'the first host', 60_000)
  stop.abort()
  expect(await code).toBe(130)
  expect(out).toMatch(/^here\trecords\tkept\t.*reports/m)
  expect(err).toMatch(/muster: stopped; not searched: mute\n$/)
})
