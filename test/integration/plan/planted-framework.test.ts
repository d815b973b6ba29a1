/** A new framework needs a file and a line in FRAMEWORKS: the verb, its help and its options know nothing else of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type Framework, flag, times } from '../../../src/scheduler/plans/framework.ts'
import { FRAMEWORKS, type FrameworkEntry } from '../../../src/scheduler/plans/frameworks.ts'

const words: Framework['words'] = { size: { kind: 'count', byDefault: 1, old: ['width'] } }
const framework: Framework = {
  source: 'sixth 1.0',
  example: 'sixth --size 2',
  words,
  flags: [flag('--size <n>', 'GPUs on one host (default: 1)', words, 'size')],
  write: (word, value) => `--${word} ${value}`,
  plan: ({ size }) => ({
    groups: [{ name: 'all', strategy: 'STRICT_PACK', bundles: times(1, { GPU: size as number }) }],
    shortage: 'hangs',
  }),
  *changes({ size }) {
    yield { size: (size as number) - 1 }
  },
}
;(FRAMEWORKS as FrameworkEntry[]).push({
  name: 'sixth',
  summary: 'plan a sixth framework',
  load: () => Promise.resolve({ framework }),
})
// The table of verbs is made when it is loaded.
const { runMuster } = await import('../../support/run-muster.ts')

const directory = mkdtempSync(join(tmpdir(), 'muster-sixth-'))
writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { m1: { transport: local, resources: { cpu: 8, gpu: 4 } } }\n')
afterAll(() => rmSync(directory, { recursive: true }))
const muster = (...args: readonly string[]) => runMuster(args, { directory })

test('it is planned, read from a line, changed and explained', async () => {
  expect(await muster('plan', 'sixth', '--size', '4')).toMatchObject({
    exitCode: 0,
    output: expect.stringMatching(/^all\t1 × \{GPU 4\}\tSTRICT_PACK\tm1: 0 1 2 3$/m),
  })
  const { exitCode, output } = await muster('plan', 'sixth', '--from-command', 'sixth --width 5')
  expect(exitCode).toBe(1)
  expect(output).toContain('It fits now with --size 4\n--width is now --size\n')
  expect((await muster('plan', '--help')).output).toContain('plan a sixth framework')
  expect((await muster('plan', 'sixth', '--help')).output).toContain('GPUs on one host (default: 1)')
})
