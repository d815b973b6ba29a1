/** Simulations take long, so they are interrupted while they calculate. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runMuster } from '../../support/run-muster.ts'

const QUEUE = join(import.meta.dirname, '../../fixtures/queue')

it.each([
  ['fleet', '--nodes', '10', '--gangs', '20'],
  ['gangs', join(QUEUE, 'gangs.json')],
  ['swf', join(QUEUE, 'nasa-3000.swf.gz')],
])('simulate %s is stopped by a signal', async (...args) => {
  const signal = AbortSignal.abort('SIGINT')
  const { exitCode, output, messages } = await runMuster(['simulate', ...args], { directory: QUEUE, signal })
  expect({ exitCode, output, messages }).toEqual({ exitCode: 130, output: '', messages: 'muster: stopped\n' })
})
