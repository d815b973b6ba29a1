/** A task of a launched job that says `failed` and goes on is the one that failed, not those that Muster stops because of it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { runMuster } from '../../support/run-muster.ts'

const canRun = process.platform === 'linux' && requirement('setsid', 'python3')

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-reported-failure-'))
  const hosts = [1, 2, 3].map((number) => `m${number}: { transport: local, address: 127.0.0.${number} }`).join(', ')
  writeFileSync(
    join(directory, 'hosts.yaml'),
    `cluster: lab\ndefaults: { resources: { cpu: 1 } }\nhosts: { ${hosts} }\n`,
  )
})
afterAll(() => rmSync(directory, { recursive: true }))

const muster = async (...words: readonly string[]) => await runMuster(words, { directory })

/** All run before the second one says so; those that are stopped end with `exit`. */
const commandOf = (exit: string): string =>
  `trap '${exit}' TERM; sleep 1000 & p=$!
echo >"$HOME/up.$MUSTER_JOB.$MUSTER_TF_INDEX"
case $MUSTER_TF_INDEX in 1)
  for i in 0 2; do until [ -e "$HOME/up.$MUSTER_JOB.$i" ]; do sleep 0.05; done; done
  echo failed >"$MUSTER_SAY";;
esac
wait $p`

describe.skipIf(!canRun)('a task of TensorFlow that says that it failed and goes on', () => {
  it.each([
    ['end by the signal', 'trap - TERM; kill -TERM $$', 'exit 143', 'stopped'],
    ['exit with 0', 'exit 0', 'exit 0', 'done'],
  ])('is named alone, where all tasks %s when they are stopped', async (_, exit, code, others) => {
    const args = ['--bundles', '3', '--cpu', '1', '--strategy', 'STRICT_SPREAD', '--', commandOf(exit)]
    const { exitCode, messages } = await muster('launch', 'tf', ...args)
    const [, id = '', host = ''] = /job (\d+): failed: worker 1 on (m\d) /.exec(messages) ?? []
    expect(messages).toMatch(/job \d+: failed: worker 1 on m\d failed first: it had reported a failure\n/)
    expect(messages).toContain(`worker 1 on ${host} failed: ${code}: it had reported a failure`)
    expect(exitCode).toBe(1)
    const rows = (await muster('job', 'ranks', id, '--json')).output.trim().split('\n')
    expect(rows.map((row) => JSON.parse(row).state)).toEqual([others, 'failed', others])
  })
})
