/** Where `kubectl proxy` has its socket. */
import { chmodSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { KubectlProxy } from '../../../../src/ops/kubernetes/proxy.ts'
import { writeProgram } from '../../../support/program.ts'
import { ManualClock } from '../../../unit/ssh/manual-clock.ts'

it('is no directory that another account can replace', async () => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'muster-proxy-')))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  writeProgram(join(directory, 'programs', 'kubectl'), 'case "$*" in *proxy*) echo "a proxy runs";; esac')
  chmodSync(directory, 0o777)
  const environment = { PATH: `${join(directory, 'programs')}:${process.env.PATH}`, TMPDIR: directory }
  using proxy = new KubectlProxy({}, { clock: new ManualClock(), environment })
  await expect(proxy.dial(new AbortController().signal)).rejects.toThrow(
    `kubectl proxy on this machine ended: muster: other accounts can replace files in ${directory}. Set TMPDIR`,
  )
  expect(readdirSync(directory)).toEqual(['programs'])
})
