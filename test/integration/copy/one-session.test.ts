/** Copies to a real sshd that allows one session per connection: there is none for the helper, and nothing waits for it. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { bytePathOf } from '../../../src/ssh/copy/byte-path.ts'
import { copyToHosts } from '../../../src/ssh/copy/copy-to-hosts.ts'
import type { CopyVia, HostResult } from '../../../src/ssh/copy/events.ts'
import { scanSources } from '../../../src/ssh/copy/source.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { nobody, watchedContext } from '../../support/ssh-context.ts'

describe.skipIf(!requirement('sshd', 'ssh-keygen', 'ps'))('copying to a host with MaxSessions 1', () => {
  let directory: string
  let narrow: OpenSshServer
  let wide: OpenSshServer
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-one-session-'))
    narrow = await startOpenSshServer({ config: ['MaxSessions 1'] })
    wide = await startOpenSshServer()
  })
  afterAll(async () => {
    await narrow?.stop()
    await wide?.stop()
    rmSync(directory, { recursive: true, force: true })
  })

  const copy = async (sources: string, via: CopyVia) => {
    const results = new Map<string, HostResult>()
    const endpoints = [
      narrow.endpoint({ host: 'narrow' }),
      wide.endpoint({ host: 'one' }),
      wide.endpoint({ host: 'two' }),
    ]
    await copyToHosts(
      endpoints,
      {
        tree: await scanSources([bytePathOf(join(directory, sources, '.'))]),
        destinationOf: ({ host }) => join(directory, `${sources}-${host}`),
        isDryRun: false,
        via,
      },
      {
        transports: { ssh2: createSsh2Transport() },
        hostKeys: watchedContext().hostKeys,
        credentials: nobody,
        clock: systemClock,
        fanOut: 8,
        signal: new AbortController().signal,
        onEvent: (event) => {
          if (event.type === 'result') results.set(event.host, event.result)
        },
      },
    )
    return endpoints.map(({ host }) => results.get(host)?.outcome)
  }

  it('copies many small files', async () => {
    mkdirSync(join(directory, 'many'))
    for (let index = 0; index < 50; index += 1) writeFileSync(join(directory, 'many', `${index}`), `contents ${index}`)
    expect(await copy('many', 'direct')).toEqual(['ok', 'ok', 'ok'])
    expect(readFileSync(join(directory, 'many-narrow', '49'), 'utf8')).toBe('contents 49')
  })

  it.each(['auto', 'chain'] as const)('copies a large file (via %s)', async (via) => {
    const source = join(directory, via)
    mkdirSync(source)
    writeFileSync(join(source, 'big'), randomBytes(5_000_000))
    expect(await copy(via, via)).toEqual(['ok', 'ok', 'ok'])
    const expected = readFileSync(join(source, 'big'))
    for (const host of ['narrow', 'one', 'two']) {
      expect(readFileSync(join(directory, `${via}-${host}`, 'big')).equals(expected)).toBe(true)
    }
  })
})
