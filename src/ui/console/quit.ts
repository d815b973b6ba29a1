/** Quitting: the console asks once and names what would end on which hosts; if nothing runs, it does not ask. */
import { printable } from '../../base/printable.ts'
import { clip } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { closeOnce, type DialogFactory, type DialogLine, isCancelKey } from '../dialogs/dialog.ts'
import { type Busy, isLive } from '../state/console-state.ts'
import type { ConsoleApp, ConsolePorts } from './console-app.ts'

/** Hosts that have not answered after this time count as idle if their screens show a prompt. Until then the user can quit with a key. */
const ANSWER_MS = 3000
const WIDTH = 76
const NAMES_WIDTH = 24

/** Quits at once when nothing can run. */
export function askToQuit(app: ConsoleApp): void {
  const { ports, state } = app
  const busy = app.busyOn()
  const { shellPrograms } = ports
  const hosts = shellPrograms ? [...state.hosts.values()].filter(isLive).map(({ host }) => host) : []
  if (busy.length === 0 && hosts.length === 0 && app.drafts.length === 0) return app.options.onQuit()
  app.openDialog(quitDialog(app, busy, hosts, shellPrograms ?? (async () => [])))
}

const quitDialog =
  (
    app: ConsoleApp,
    busy: readonly Busy[],
    hosts: readonly string[],
    shellPrograms: NonNullable<ConsolePorts['shellPrograms']>,
  ): DialogFactory =>
  ({ onClose, onChange }) => {
    const answers = new Map<string, readonly string[] | undefined>()
    const stop = new AbortController()
    let isAsking = hosts.length > 0
    const closing = closeOnce(onClose)
    const close = (): boolean => {
      stop.abort()
      timer?.[Symbol.dispose]()
      return closing()
    }
    const quit = (): void => {
      if (close()) app.options.onQuit()
    }
    const pending = (): string[] => hosts.filter((host) => !answers.has(host) && (isAsking || !app.isAtPrompt(host)))
    const unknown = (): string[] =>
      hosts.filter((host) => answers.has(host) && answers.get(host) === undefined && !app.isAtPrompt(host))
    const running = (): (readonly [string, readonly string[]])[] => {
      const all = hosts.flatMap((host) => (answers.get(host) ?? []).map((program) => ({ host, program })))
      const groups = Map.groupBy(all, ({ program }) => program)
      return [...groups].map(([program, on]) => [program, [...new Set(on.map(({ host }) => host))]])
    }
    const decide = (): void => {
      if (!isAsking) return onChange()
      isAsking = false
      if (busy.length + pending().length + unknown().length + running().length + app.drafts.length === 0) return quit()
      onChange()
    }
    const note = (host: string, programs: readonly string[] | undefined): void => {
      answers.set(host, programs)
      if (stop.signal.aborted) return
      if (!isAsking || answers.size === hosts.length) decide()
    }
    const timer = isAsking ? app.clock.after(ANSWER_MS, decide) : undefined
    for (const host of hosts) {
      shellPrograms(host, stop.signal).then(
        (programs) => note(host, programs),
        () => note(host, undefined),
      )
    }
    const titleOf = (): string => {
      const shells = [...new Set([...running().flatMap(([, on]) => on), ...unknown()])]
      const names = [
        ...busy.map(({ title }) => title),
        ...(shells.length === 0 ? [] : [`what runs on ${clip(foldHostSet(shells), NAMES_WIDTH)}`]),
      ]
      const does = [
        ...(names.length === 0 ? [] : [`end ${names.join(' and ')}`]),
        ...(app.drafts.length === 0 ? [] : [`lose ${textsNotSent(app.drafts.length)}`]),
      ]
      return does.length === 0 ? 'Quit?' : `Quit and ${does.join(', and ')}?`
    }
    const lineOf = (text: string, on: readonly string[]): DialogLine => {
      const right = clip(foldHostSet(on), NAMES_WIDTH)
      return { text: clip(text, WIDTH - right.length - 8), right }
    }
    return {
      view: ({ rows }) => {
        const lineIfAny = (text: string, on: readonly string[], tone: 'warning' | 'muted'): DialogLine[] =>
          on.length === 0 ? [] : [{ ...lineOf(text, on), tone }]
        const ending = [
          ...busy.map(({ title, hosts: on }) => lineOf(title, on)),
          ...running().map(([program, on]) => lineOf(program, on)),
          ...lineIfAny('an unknown program', unknown(), 'warning'),
        ]
        const drafts = app.drafts.map(({ text }) => ({
          text: clip(`a text that was not sent: ${printable(text.trim().split('\n')[0] ?? '')}`, WIDTH - 8),
        }))
        const lines = [...ending, ...drafts, ...lineIfAny('asking what runs …', pending(), 'muted')]
        const most = Math.max(1, rows - 9)
        return {
          id: 'quit',
          title: titleOf(),
          lines: [
            ...(lines.length === 0 ? [{ text: 'Nothing runs in the shells.' }] : lines.slice(0, most)),
            ...(lines.length > most ? [{ text: `… and ${lines.length - most} more`, tone: 'muted' as const }] : []),
            ...(work(app) ? [{ text: 'An interrupted copy continues next time.', tone: 'muted' as const }] : []),
          ],
          tone: 'danger',
          width: WIDTH,
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
