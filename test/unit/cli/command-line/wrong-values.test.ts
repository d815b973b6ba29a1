import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runMuster } from '../../../support/run-muster.ts'

it.each([
  [['job', 'cancel', 'all'], "'all' is not a valid value for ids. It must be a job number, or a range such as 17-19."],
  [['--timeout', 'soon', 'hosts'], "'soon' is not a valid value for --timeout <s>. It must be"],
  [['run', 'here', '--out', '', '--', 'true'], 'the path of --out is empty\nIs a variable not set?\n'],
  [['--hosts=', 'hosts'], 'the path of --hosts is empty\n'],
  [['job', 'submit', '--copy-dir', '', '--', 'true'], 'the path of --copy-dir is empty\n'],
  [
    ['-l', 'ann', 'run', 'here', 'id'],
    '`muster run` has no -l, an option of the console\nWrite the user with the host: USER@HOST\n',
  ],
  [
    ['--port=22', 'hosts'],
    '`muster hosts` has no -p, an option of the console\nWrite the port with the host: HOST:PORT\n',
  ],
  [['--keep', 'job', 'list'], '`muster job list` has no --keep, an option of the console\n'],
  [['hepl'], 'unknown command: hepl; did you mean muster help?\n'],
  [['left', '--also', '/data', '--also', ''], 'the path of --also is empty\n'],
])('says plainly what is wrong with %j', async (args, words) => {
  const directory = mkdtempSync(join(tmpdir(), 'muster-values-'))
  try {
    writeFileSync(join(directory, 'hosts.yaml'), 'cluster: c\nhosts: { here: { transport: local } }\n')
    const { exitCode, messages } = await runMuster(args, { directory })
    expect([exitCode, messages]).toEqual([2, expect.stringContaining(`muster: ${words}`)])
  } finally {
    rmSync(directory, { recursive: true })
  }
})
