/** Hosts without declared resources that no scheduler has asked yet: what is not known is not none. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openConsoleQueue } from '../../../../src/cli/job/console-queue.ts'
import { parseWhatIf } from '../../../../src/ui/packing/what-if.ts'
import { contextIn, runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-unknown-'))
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: lab\nhosts: { m1: {}, m2: { resources: { cpu: 4, memory: 8GiB } } }\n',
  )
})
afterEach(() => rmSync(directory, { recursive: true }))

it('submit --dry-run says where the job would go, and what is not known', async () => {
  const { output, messages } = await runMuster(
    ['job', 'submit', '--dry-run', '--bundles', '2', '--strategy', 'STRICT_SPREAD', '--', 'true'],
    { directory },
  )
  expect(output).toBe('bundle 0: m2\nbundle 1: m1\n')
  expect(messages).toContain('muster: the cores of m1 are not known yet, and count as enough\n')
})

it('a what-if says the same', async () => {
  using queue = await openConsoleQueue({ hosts: join(directory, 'hosts.yaml') }, contextIn(directory))
  const trial = (text: string) => {
    const whatIf = parseWhatIf(text)
    if (typeof whatIf === 'string') throw new Error(whatIf)
    return queue.tryOut(whatIf, [])
  }
  expect(trial('--bundles 2 --memory 1GiB --strategy STRICT_SPREAD')).toMatchObject({
    places: [{ host: 'm2' }, { host: 'm1' }],
    unknown: 'the cores of m1 are not known yet, the memory of m1 is not known yet',
  })
  expect(trial('--bundles 1 --gpu 1').places).toBeUndefined()
})
