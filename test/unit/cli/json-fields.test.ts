/** `--json=FIELD,…`, and that every verb with --json says what it prints. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verbsIn } from '../../../scripts/verbs-in.ts'
import { selectionOf } from '../../../src/cli/command-line/json-fields.ts'
import { jsonLine } from '../../../src/cli/output/json-lines.ts'
import { line, output, text } from '../../../src/cli/schemas/shape.ts'
import { ROOT } from '../../support/console-options.ts'
import { jsonChecker, jsonVerbOf } from '../../support/json-output.ts'
import { runMuster } from '../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-json-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { m8: {}, m9: {}, here: { transport: local } }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

const muster = (args: string) => runMuster(args.split(' '), { directory })

describe('--json=FIELDS', () => {
  it('prints these fields in their order, and null where a line has none', async () => {
    const { output: shown } = await muster('hosts --json=host,transport,address')
    expect(shown).toBe(
      '{"host":"m8","transport":"ssh2","address":"m8"}\n{"host":"m9","transport":"ssh2","address":"m9"}\n{"host":"here","transport":"local","address":null}\n',
    )
  })

  it('leaves the word after --json, and what stands behind --, to the verb', async () => {
    expect((await muster('hosts --json m8')).output).toMatch(/^\{"version":1,"type":"host","host":"m8",.*\}\n$/)
    expect((await muster('hosts --json=host m8')).output).toBe('{"host":"m8"}\n')
    const { output: shown } = await muster('run m8 --dry-run --json=command -- jq --json=x')
    expect(shown).toBe('{"command":"jq --json=x"}\n')
  })

  it.each([
    [
      'hosts --json=host,adress',
      'muster: --json= has no field adress. Fields, by type of line:\n  host: version, type, host,',
    ],
    ['hosts --json=', 'muster: --json= names no field'],
    ['hosts --json=address,set', 'muster: no line has all of address, set. Fields'],
    ['completion bash --json', 'muster: `muster completion` has no --json\n'],
    ['m8 --json', 'muster: the console has no --json\n'],
    ['completion bash --json=a', 'muster: `muster completion` has no --json\n'],
  ])('%s is refused', async (args, message) => {
    const { exitCode, messages, output: shown } = await muster(args)
    expect([exitCode, shown]).toEqual([2, ''])
    expect(messages).toContain(message)
  })

  it('leaves out lines of other types', () => {
    const schema = output('a', 'a', line('one', '', { a: text, b: text }), line('two', '', { a: text }))
    const linesOf = (fields: string) => {
      const selection = selectionOf(fields, schema)
      return [
        { type: 'one', a: 'x', b: 'y' },
        { type: 'two', a: 'z' },
      ].map((event) => jsonLine(event, { selection }))
    }
    expect(linesOf('a')).toEqual(['{"a":"x"}\n', '{"a":"z"}\n'])
    expect(linesOf('b,a')).toEqual(['{"b":"y","a":"x"}\n', ''])
    expect(linesOf('type,b')).toEqual(['{"type":"one","b":"y"}\n', ''])
  })
})

describe('schemas', () => {
  it('are in docs/schema, one for each kind of output', async () => {
    const schemas = await Promise.all(verbsIn().map(async ([, verb]) => await verb.output?.()))
    const wanted = new Set(schemas.flatMap((schema) => schema?.$id ?? []))
    const there = readdirSync(join(ROOT, 'docs', 'schema')).filter((name) => name.endsWith('.schema.json'))
    expect(there.toSorted()).toEqual([...wanted].toSorted())
  })

  it('are printed by name and by verb', async () => {
    const { output: printed } = await muster('schema job list')
    expect(JSON.parse(printed)).toMatchObject({ $id: 'job-list.schema.json' })
    expect((await muster('schema job-list')).output).toBe(printed)
    expect(JSON.parse((await muster('schema up')).output)).toMatchObject({ $id: 'change.schema.json' })
    expect((await muster('schema')).output).toMatch(/^copy\tcopy, fetch$/m)
    expect((await muster('schema --json')).output).toContain('"name":"job-list"')
    expect(await muster('schema jobs list')).toMatchObject({
      exitCode: 2,
      messages: 'muster: there is no schema jobs list; did you mean job list?\nRun: muster schema\n',
    })
  })

  it('allow no other field, and no field to be missing that they require', async () => {
    const found = jsonVerbOf(['job', 'wait', '3', '--json'])
    expect(found?.path).toBe('job wait')
    const check = found && (await jsonChecker(found))
    expect(check?.('{"version":1,"type":"ended","job":3,"state":"done"}')).toBeUndefined()
    for (const wrong of ['"state":"dome"', '"state":"done","more":1', '"sate":"done"'])
      expect(check?.(`{"version":1,"type":"ended","job":3,${wrong}}`)).toContain('muster job wait --json')
    expect(check?.('job 3')).toContain('no JSON')
  })
})
