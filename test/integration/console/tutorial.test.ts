/** docs/tutorial.md, followed key by key: its reader must see what it says. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'
import { ROOT } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { follow, readTutorial } from '../../support/tutorial.ts'

const canRun = process.platform === 'linux' && requirement('ssh', 'setsid', 'awk')

it.skipIf(!canRun)('the tutorial can be followed in the demo, and shows what it says', async () => {
  const steps = readTutorial(readFileSync(join(ROOT, 'docs', 'tutorial.md'), 'utf8'))
  const leaving = steps.pop()
  expect(leaving).toEqual({ kind: 'keys', inputs: ['Ctrl-]', 'q'].map((text) => ({ kind: 'press', text })) })
  expect(steps.filter(({ kind }) => kind === 'screen').length).toBeGreaterThan(30)
  await using console = await openConsole({ args: ['demo'], size: [110, 30] })
  await console.expectReady()
  for (const step of steps) await follow(console, step)
  expect(await console.quit()).toEqual({ code: 0 })
})
