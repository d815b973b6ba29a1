/** What `muster copy --json` and `muster fetch --json` print is what docs/schema/copy.schema.json says. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { runProgram } from '../../../src/cli/program.ts'
import { ROOT } from '../../support/console-options.ts'

const HOSTS = `
hosts:
  m8: { transport: local }
  dead: { address: 127.0.0.1, port: 1 }
`
const schema = z.fromJSONSchema(JSON.parse(readFileSync(join(ROOT, 'docs/schema/copy.schema.json'), 'utf8')))

describe('the JSON of copy and fetch', () => {
  let directory: string
  const path = (name: string): string => join(directory, name)
  const muster = async (...args: readonly string[]) => {
    const stdout = new PassThrough()
    let out = ''
    stdout.setEncoding('utf8').on('data', (text) => (out += text))
    const code = await runProgram([...args, '--json'], {
      stdin: Readable.from([]),
      stdout,
      stderr: new PassThrough().resume(),
      environment: { ...process.env, HOME: directory, XDG_CONFIG_HOME: path('config') },
      workingDirectory: directory,
      signal: new AbortController().signal,
      now: Date.now,
    })
    const objects = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    for (const object of objects) expect([object, schema.safeParse(object).error]).toEqual([object, undefined])
    return { code, objects }
  }
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'copy-json-'))
    writeFileSync(path('hosts.yaml'), HOSTS)
    mkdirSync(path('tree/blocked'), { recursive: true })
    writeFileSync(path('tree/file'), 'contents')
    writeFileSync(path('tree/blocked/file'), 'contents')
    symlinkSync('file', path('tree/link'))
    execFileSync('mkfifo', [path('tree/pipe')])
  })
  afterEach(() => rmSync(directory, { recursive: true }))

  it('matches the schema, whatever happens to a host or a file', async () => {
    mkdirSync(path('there'))
    writeFileSync(path('there/blocked'), 'a file is in the way')
    const { code, objects } = await muster('copy', 'm8,dead', 'tree/.', path('there'))
    expect(code).toBe(4)
    const of = (type: string) => objects.filter((object) => object.type === type)
    expect(of('problem')).toMatchObject([{ path: `${directory}/tree/./pipe` }])
    expect(
      of('file')
        .map(({ action }) => action)
        .sort(),
    ).toEqual(['copied', 'copied', 'failed'])
    expect(
      of('result')
        .map(({ host, outcome }) => `${host} ${outcome}`)
        .sort(),
    ).toEqual(['dead unreachable', 'm8 failed'])
    expect(of('summary')).toMatchObject([{ hosts: 2, ok: 0, failed: 1, unreachable: 1, refused: 0, cancelled: 0 }])
    const again = await muster('copy', 'm8', '--dry-run', 'tree/file', path('there/new'))
    expect(again.objects[0]).toMatchObject({ type: 'file', action: 'would-copy', sizeBytes: 8 })
    const back = await muster('fetch', 'm8', path('there/file'), path('none'), path('out'))
    expect(back.objects.map(({ type, action }) => action ?? type).sort()).toEqual([
      'copied',
      'failed',
      'result',
      'summary',
    ])
    expect(readFileSync(path('out/m8/file'), 'utf8')).toBe('contents')
  })

  it('rejects anything else', () => {
    const known = { version: 1, type: 'result', host: 'm8', outcome: 'ok' }
    const result = { ...known, copied: 1, identical: 0, failed: 0, sentBytes: 5 }
    const time = new Date(0).toISOString()
    expect(schema.safeParse({ ...result, durationMs: 1, time }).success).toBe(true)
    for (const wrong of [
      { ...result, time },
      { ...result, durationMs: 1 },
      { ...result, durationMs: 1, time, more: 1 },
    ])
      expect(schema.safeParse(wrong).success).toBe(false)
  })
})
