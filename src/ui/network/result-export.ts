/** Asks for a path, and writes a result there as SVG or CSV. */
import { sentenceOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { clockText, dayText } from '../../base/time-text.ts'
import { testCsv, testSvg } from '../../ops/net/format-test.ts'
import { seriesOf, type TestConclusion } from '../../ops/net/kept-test.ts'
import { meshCsv, meshSvg, meshTitle } from '../../ops/net/mesh/format-mesh.ts'
import { promptDialog } from '../dialogs/prompt-dialog.ts'
import { completePath } from '../dialogs/prompt-line.ts'
import { confirmDialog } from '../dialogs/text-dialog.ts'
import type { PageContext } from '../state/console-state.ts'
import type { MeshPicture } from './mesh-picture.ts'
import type { NetTestsPort } from './net-tests-port.ts'

/** `name`: the file, unless another name is typed. `rows`: what the lines of the CSV are, such as `12 links`. */
type Exported = { svg(): string; csv(): string; readonly name: string; readonly rows: string }

const nameOf = (kind: string, timeMs: number): string =>
  `${kind}-${dayText(timeMs)}-${clockText(timeMs).replace(':', '')}.svg`

export function meshExport({ report, findings, timeMs, names }: MeshPicture): Exported {
  return {
    svg: () => meshSvg(report, findings, meshTitle(names.length, timeMs)),
    csv: () => meshCsv(report),
    name: nameOf('mesh', timeMs),
    rows: `${report.links.length} links`,
  }
}

export function testExport({ test, findings }: TestConclusion): Exported {
  const count = seriesOf(test).reduce((sum, { values }) => sum + values.length, 0)
  return {
    svg: () => testSvg(test, findings),
    csv: () => testCsv(test),
    name: nameOf(test.kind, Date.parse(test.time)),
    rows: `${count} values`,
  }
}

const isCsv = (path: string): boolean => /\.csv$/i.test(path.trim())

export function openExport(context: PageContext, port: Pick<NetTestsPort, 'save'>, result: Exported): void {
  const write = (path: string, overwrites: boolean): void => {
    const written = port.save(path, isCsv(path) ? result.csv() : result.svg(), overwrites)
    if (written !== undefined) return context.notice(`written to ${written}`)
    context.openDialog(
      confirmDialog({
        id: 'overwrite',
        title: 'Overwrite the file?',
        lines: [{ text: printable(path) }],
        yesTitle: 'overwrite',
        noTitle: 'keep the file',
        onYes: () => {
          try {
            write(path, true)
          } catch (error) {
            context.notice(sentenceOf(error), 'error')
          }
        },
      }),
    )
  }
  context.openDialog(
    promptDialog({
      id: 'write-result',
      title: 'Write the result to a file',
      label: 'File:',
      submitTitle: 'write',
      fallback: result.name,
      help: [{ text: 'Enter accepts this name. A name with .svg writes a picture, with .csv a table.', tone: 'muted' }],
      check: (path) =>
        /\.(svg|csv)$/i.test(path.trim())
          ? { preview: [{ text: isCsv(path) ? `${result.rows} as CSV` : 'a picture as SVG', tone: 'ok' }] }
          : { error: 'end the name with .svg or .csv' },
      complete: completePath,
      staysOpen: true,
      onSubmit: (path) => write(path.trim(), false),
    }),
  )
}
