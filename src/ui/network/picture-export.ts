/** Writes a mesh as SVG or CSV, to a path that is asked for. */
import { sentenceOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { meshCsv, meshSvg, meshTitle } from '../../ops/net/mesh/format-mesh.ts'
import { promptDialog } from '../dialogs/prompt-dialog.ts'
import { completePath } from '../dialogs/prompt-line.ts'
import { confirmDialog } from '../dialogs/text-dialog.ts'
import type { PageContext } from '../state/console-state.ts'
import type { MeshPicture } from './mesh-picture.ts'
import type { NetTestsPort } from './net-tests-port.ts'

const isKnown = (path: string): boolean => /\.(svg|csv)$/i.test(path.trim())

export function openExport(context: PageContext, port: Pick<NetTestsPort, 'save'>, picture: MeshPicture): void {
  const { report, findings, timeMs, names } = picture
  const title = meshTitle(names.length, timeMs)
  const write = (path: string, overwrites: boolean): void => {
    const text = /\.csv$/i.test(path) ? meshCsv(report) : meshSvg(report, findings, title)
    const written = port.save(path, text, overwrites)
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
      help: [{ text: 'net.svg is a picture, net.csv has a line for each link.', tone: 'muted' }],
      check: (path) =>
        isKnown(path)
          ? {
              preview: [
                {
                  text: /\.csv$/i.test(path.trim()) ? `${report.links.length} links as CSV` : 'a picture as SVG',
                  tone: 'ok',
                },
              ],
            }
          : { error: 'end the name with .svg or .csv' },
      complete: completePath,
      staysOpen: true,
      onSubmit: (path) => write(path.trim(), false),
    }),
  )
}
