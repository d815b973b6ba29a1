import { expect, it } from 'vitest'
import { textWidth } from '../../../../src/base/text-width.ts'
import { themes } from '../../../../src/ui/compositor/scene.ts'
import { type CopyView, copyDocument, reduceCopy, startCopy } from '../../../../src/ui/work-views/copy-document.ts'

const HOSTS = ['h1', 'h2', 'h3', 'h4', 'h5']
const MIB = 2 ** 20

/** The first four hosts have begun with 57 MiB and have `doneMib` of it; the last one still waits. */
const copyOf = (doneMib: number): CopyView =>
  HOSTS.slice(0, 4).reduce(
    (view, host) => {
      const begun = reduceCopy(view, { type: 'begin', host, files: 1, totalBytes: 57 * MIB })
      return reduceCopy(begun, { type: 'progress', host, bytes: doneMib * MIB })
    },
    startCopy(['big.bin'], 'copied/', HOSTS),
  )

const progressOf = (view: CopyView, columns: number): string =>
  copyDocument(view, { theme: themes.none, columns, rows: 20 })
    .head[1]?.map(({ text }) => text)
    .join('') ?? ''

it('is not done while a host has not begun', () => {
  expect(progressOf(copyOf(57), 78)).toBe(' 0 of 5 hosts done  [############----]  80 %  228 MiB of 285 MiB')
})

it('shortens its bar where the amounts need the room, and leaves it out where little is left', () => {
  const view = copyOf(30)
  expect(progressOf(view, 58)).toBe(' 0 of 5 hosts done  [####------]  42 %  120 MiB of 285 MiB')
  expect(progressOf(view, 51)).toBe(' 0 of 5 hosts done   42 %  120 MiB of 285 MiB')
  for (let columns = 46; columns < 80; columns++)
    expect(textWidth(progressOf(view, columns))).toBeLessThanOrEqual(columns)
})
