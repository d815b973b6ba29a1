/** Many hosts behind SSH, some of them down: what a person sees, and what each command says about which host. */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedHosts, startEmbeddedHosts } from '../../src/ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../src/terminal/local-pty.ts'
import { openConsole } from '../support/console-driver.ts'
import { PROGRAM, ROOT } from '../support/console-options.ts'
import { type EmbeddedInventory, writeEmbeddedInventory } from '../support/embedded-inventory.ts'
import { requirement } from '../support/requirements.ts'
import { waitUntil } from '../support/wait-until.ts'

const COUNT = 150

describe.skipIf(!requirement('ssh'))('150 hosts', () => {
  let embedded: EmbeddedHosts
  let inventory: EmbeddedInventory

  beforeAll(async () => {
    embedded = await startEmbeddedHosts({ count: COUNT, spawnPty: spawnLocalPty })
    // Nothing listens at port 1.
    inventory = writeEmbeddedInventory(embedded, [
      '  "down[1-30]": { address: 127.0.0.1, port: 1 }',
      'groups: { up: "m[1-150]" }',
    ])
  })
  afterAll(async () => {
    inventory?.[Symbol.dispose]()
    await embedded?.close()
  })

  const muster = async (...args: readonly string[]) =>
    await new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      const [file = '', ...words] = [...PROGRAM, '--hosts', inventory.file, ...args]
      const options = { cwd: ROOT, env: inventory.environment, maxBuffer: 2 ** 26 }
      execFile(file, words, options, (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }))
    })
  const DOWN =
    'unreachable: cannot connect to \\S+@HOST:1: connection refused\\. Check the port, and that sshd runs there\\.'

  it('run a command at once, and their failures are folded like their output', async () => {
    const { code, stdout, stderr } = await muster('--fan-out', '180', 'run', 'all', '--fold', '--', 'echo same')
    expect(stdout).toBe('---------------\nm[1-150] (150)\n---------------\nsame\n')
    expect(stderr).toMatch(
      new RegExp(`^muster: down\\[1-30\\] \\(30\\): ${DOWN}\nmuster: 180 hosts: 150 ok, 30 unreachable\n$`),
    )
    expect(code).toBe(4)
  })

  it('are checked, and those that do not answer are named last', async () => {
    const { code, stdout, stderr } = await muster('hosts', '--check')
    expect(stdout.match(/yes, \d+ ms$/gm)).toHaveLength(COUNT)
    expect(stderr).toMatch(
      new RegExp(`^muster: down\\[1-30\\] \\(30\\): ${DOWN}\nmuster: 150 of 180 hosts answered\n$`),
    )
    expect(code).toBe(4)
  })

  it('get a file each', async () => {
    const source = join(embedded.directory, 'sent')
    writeFileSync(source, 'one line\n')
    const { code, stderr } = await muster('copy', '@up', source, 'got-%h')
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('150 of 150 hosts ok') })
    const files = embedded.hosts.map(({ name }) => readFileSync(join(embedded.directory, name, `got-${name}`), 'utf8'))
    expect(new Set(files)).toEqual(new Set(['one line\n']))
  })

  it('are shown on pages, in one pane where they are equal, and come back after all connections were cut', async () => {
    const options = { args: ['--hosts', inventory.file, 'all'], environment: inventory.environment }
    await using console = await openConsole({ ...options, size: [120, 40] })
    await console.expectHeader(/150\/180 up/)
    await console.receivers('@up')
    await console.type('clear; echo typed-$((40+2))\r')
    await console.expectOn('m1', /typed-42/)
    await console.leader('=')
    await console.expectScreen(/m\[1-150\] \(150 folded\)/)
    await console.leader('=')
    const before = embedded.hosts.map(({ name }) => embedded.host(name).acceptedCount)
    for (const { name } of embedded.hosts) embedded.host(name).dropConnections()
    const areBack = () => embedded.hosts.every(({ name }, at) => embedded.host(name).acceptedCount > (before[at] ?? 0))
    await waitUntil(areBack, 'all hosts to be connected again')
    await console.expectHeader(/150\/180 up.*no keys yet: m\[1-150\]/)
    await console.leader('a')
    await console.expectHeader(/150\/180 up(?!.*no keys yet)/)
    await console.type('echo again-$((40+2))\r')
    await console.expectOn('m1', /again-42/)
  })
})
