/** The help of a launcher that hosts.yaml names. */
import { expect, it } from 'vitest'
import { runMuster } from '../../support/run-muster.ts'

it('shows the help of `launch row` for the name of a row, and that of all launchers without one', async () => {
  const helpOf = async (...words: readonly string[]) =>
    (await runMuster(['launch', ...words, '--help'], { directory: '/' })).output
  expect(await helpOf('accelerate')).toBe(await helpOf('row', 'accelerate'))
  expect(await helpOf('accelerate')).toContain('Usage: muster launch row [options] [row] [command...]')
  expect(await helpOf()).toContain('Usage: muster launch [options] [command]')
})
