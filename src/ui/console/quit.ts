/** Quitting: the console asks once and names what would end on which hosts; if nothing runs, it does not ask. */
import { printable } from '../../base/printable.ts'
import { clip } from '../../base/text-width.ts'
import { closeOnce, type DialogFactory, isCancelKey } from '../dialogs/dialog.ts'
import { type Busy, isLive } from '../state/console-state.ts'
import type { ConsoleApp } from './console-app.ts'
import { fewLines, foldedNames, PROGRAMS_WIDTH, programLine, ShellPrograms } from './shell-programs.ts'

/** Quits at once when nothing can run. */
export function askToQuit(app: ConsoleApp): void {
  const { ports, state } = app
  const busy = app.busyOn()
  const isOpen = ports.shellPrograms !== undefined && [...state.hosts.values()].some(isLive)
  if (busy.length === 0 && !isOpen && app.drafts.length === 0) return app.options.onQuit()
  app.openDialog(quitDialog(app, busy))
}

const quitDialog =
  (app: ConsoleApp, busy: readonly Busy[]): DialogFactory =>
  ({ onClose, onChange }) => {
    const closing = closeOnce(onClose)
    const close = (): boolean => {
      programs[Symbol.dispose]()
      return closing()
    }
    const quit = (): void => {
      if (close()) app.options.onQuit()
    }
    let isFirst = true
    const programs = new ShellPrograms(app, [...app.state.hosts.keys()], () => {
      const { lines, pendingLines } = programs
      const count = busy.length + lines.length + pendingLines.length + app.drafts.length
      if (isFirst && count === 0) return quit()
      isFirst = false
      onChange()
    })
    const titleOf = (): string => {
      const shells = programs.hosts
      const names = [
        ...busy.map(({ title }) => title),
        ...(shells.length === 0 ? [] : [`what runs on ${foldedNames(shells)}`]),
      ]
      const does = [
        ...(names.length === 0 ? [] : [`end ${names.join(' and ')}`]),
        ...(app.drafts.length === 0 ? [] : [`lose ${textsNotSent(app.drafts.length)}`]),
      ]
      return does.length === 0 ? 'Quit?' : `Quit and ${does.join(', and ')}?`
    }
    return {
      view: ({ rows }) => {
        const ending = [...busy.map(({ title, hosts: on }) => programLine(title, on)), ...programs.lines]
        const drafts = app.drafts.map(({ text }) => ({
          text: clip(`a text that was not sent: ${printable(text.trim().split('\n')[0] ?? '')}`, PROGRAMS_WIDTH - 8),
        }))
        const lines = [...ending, ...drafts, ...programs.pendingLines]
        return {
          id: 'quit',
          title: titleOf(),
          lines: [
            ...(lines.length === 0
              ? [{ text: 'Nothing runs in the shells.' }]
              : fewLines(lines, Math.max(1, rows - 9))),
            ...(work(app) ? [{ text: 'An interrupted copy continues next time.', tone: 'muted' as const }] : []),
          ],
          tone: 'danger',
          width: PROGRAMS_WIDTH,
          keys: [
            ['y', ending.length === 0 ? 'quit' : 'end and quit'],
            ['Esc', 'keep running'],
          ],
        }
      },
      key(label) {
        if (label === 'y' || label === 'Y') quit()
        else if (isCancelKey(label) || label === 'n' || label === 'N') close()
      },
      cancel: close,
    }
  }

const textsNotSent = (count: number): string =>
  count === 1 ? 'a text that was not sent' : `${count} texts that were not sent`

const work = ({ work: { isHeld }, state }: ConsoleApp): boolean => isHeld && state.panel?.view.kind === 'copy'
