/**
 * A macro whose text a program of the user prints, for each host. While it runs, its dialog has the keys: receivers, tabs and what is
 * typed stay as they were when it was chosen. Text of several lines, which the user has not seen, is shown first.
 */
import { basename } from 'node:path'
import { counted } from '../../base/counted.ts'
import { fileReason, sentenceOf } from '../../base/errors.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { type ProgramEnd, runProgram } from '../../base/run-program.ts'
import { clip } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { closeOnce, type DialogFactory, type DialogLine, isCancelKey } from '../dialogs/dialog.ts'
import { typedAhead } from '../dialogs/prompt-dialog.ts'
import { type HostState, liveReceivers } from '../state/console-state.ts'
import type { Addressees, ConsoleApp } from './console-app.ts'

export type ScriptMacro = { readonly name: string; readonly command: readonly string[] }

type Output = { readonly host: string } & ({ readonly text: string } | { readonly reason: string })

const LIMIT_MS = 10_000
const MOST_BYTES = 64 * 1024

export function runScript(app: ConsoleApp, macro: ScriptMacro): void {
  const hosts = liveReceivers(app.state)
  // Says why there are none.
  if (hosts.length === 0) return app.sendToReceivers(new Uint8Array())
  app.openDialog(scriptDialog(app, macro, hosts))
}

const scriptDialog =
  (app: ConsoleApp, { name, command }: ScriptMacro, hosts: readonly string[]): DialogFactory =>
  ({ onClose, onChange }) => {
    const id = 'macro-script'
    const addressees = app.addressees(hosts)
    const stop = new AbortController()
    const closing = closeOnce(onClose)
    let outputs: readonly Output[] | undefined
    let isTypedAhead = false
    let isDone = false
    let how: string | undefined
    const close = (): void => {
      stop.abort()
      closing()
    }
    const insert = (found: readonly Output[]): void => {
      isDone = true
      if (!isTypedAhead) close()
      const before = app.state.notice
      insertOutputs(app, addressees.now(), found)
      const { notice } = app.state
      // Over what the console itself says of a text that did not reach every host.
      if (notice !== undefined && notice !== before) how = `${notice.text[0]?.toUpperCase()}${notice.text.slice(1)}.`
      if (isTypedAhead) onChange()
    }
    const known = hosts.flatMap((host) => app.state.hosts.get(host) ?? [])
    const run = async (): Promise<void> => {
      const found = await Promise.all(known.map((host) => outputOf(app, host, command, stop.signal)))
      if (stop.signal.aborted) return
      outputs = found
      if (found.some((output) => 'text' in output && output.text.includes('\n'))) onChange()
      else insert(found)
    }
    run().catch((error: unknown) => {
      close()
      app.notice(`${name}: ${sentenceOf(error)}`, 'error')
    })
    return {
      view({ rows }) {
        if (isDone) return { id, title: name, lines: typedAhead(how), keys: [['Enter', 'close']] }
        if (outputs === undefined) {
          const lines: readonly DialogLine[] = [{ text: `Its program runs for ${foldHostSet(hosts)} …`, tone: 'muted' }]
          return { id, title: name, lines, keys: [['Esc', 'cancel']] }
        }
        const isSecret = hosts.some((host) => app.asks(host) !== undefined)
        const lines = outputs.flatMap((output) => outputLines(output, isSecret))
        const most = Math.max(2, rows - 10)
        const left = lines.length - most
        return {
          id,
          title: `Type this into ${foldHostSet(hosts)}?`,
          lines: [
            { text: 'Each line but the last one of a host is entered.', tone: 'muted' },
            ...lines.slice(0, most),
            ...(left > 0 ? [{ text: `… and ${left} more`, tone: 'muted' as const }] : []),
          ],
          tone: 'danger',
          keys: [
            ['y', 'type'],
            ['Esc', 'cancel'],
          ],
        }
      },
      key(label) {
        if (isCancelKey(label) || (isDone && label === 'Enter')) close()
        else if (outputs === undefined) isTypedAhead = true
        else if (!isDone && (label === 'y' || label === 'Y')) {
          isTypedAhead = false
          insert(outputs)
        }
      },
      paste() {
        if (outputs === undefined) isTypedAhead = true
      },
      cancel: close,
    }
  }

/** `isSecret`: a host asks for something, and the texts of the others may be the same. */
function outputLines(output: Output, isSecret: boolean): readonly DialogLine[] {
  const { host } = output
  if ('reason' in output) return [{ text: printable(`${host}: ${output.reason}`), tone: 'error' }]
  const [first = '', ...others] = output.text.split('\n')
  if (isSecret) {
    const words = `${counted(others.length + 1, 'line')}, not shown: it may be a password that a host asks for`
    return [{ text: printable(`${host}: ${words}`), tone: 'warning' }]
  }
  return [{ text: printable(`${host}: ${first}`) }, ...others.map((line) => ({ text: printable(`  ${line}`) }))]
}

function insertOutputs(
  app: ConsoleApp,
  { live, skipped }: ReturnType<Addressees['now']>,
  outputs: readonly Output[],
): void {
  const meant = outputs.filter(({ host }) => live.includes(host))
  const failed = meant.flatMap((output) => ('reason' in output ? [output] : []))
  app.sendEach(
    meant.flatMap((output) =>
      'text' in output ? [{ hosts: [output.host], bytes: Buffer.from(output.text.replaceAll('\n', '\r')) }] : [],
    ),
    [...failed, ...skipped],
  )
}

/** The environment variables that describe the host to a program. */
const macroEnvironment = ({ ownName, number, user, address }: HostState): Readonly<Record<string, string>> => ({
  MUSTER_HOST: ownName,
  MUSTER_NUMBER: String(number),
  MUSTER_USER: user,
  MUSTER_ADDRESS: address,
})

function failureOf(end: ProgramEnd): string {
  if (end.kind === 'too-much') return `printed more than ${formatBytes(MOST_BYTES)}`
  if (end.kind === 'unable') return `cannot be started: ${fileReason(end.error)}`
  if (end.kind !== 'exit') return `took longer than ${LIMIT_MS / 1000} s`
  const { code, signal, stderr } = end
  const how = signal ? `was ended by ${signal}` : `failed (exit ${code})`
  const words = clip(stderr.toString().trim().split('\n').at(-1)?.trim() ?? '', 80)
  return words === '' ? how : `${how}: ${words}`
}

/** Without the final newline and control characters. */
async function outputOf(
  app: ConsoleApp,
  known: HostState,
  [file = '', ...args]: readonly string[],
  signal: AbortSignal,
): Promise<Output> {
  const { host } = known
  const env = { ...app.ports.environment, ...macroEnvironment(known) }
  const end = await runProgram(file, args, { env, limitMs: LIMIT_MS, mostBytes: MOST_BYTES, signal })
  if (end.kind !== 'exit' || end.code !== 0) return { host, reason: `${basename(file)} ${failureOf(end)}` }
  const text = end.stdout.toString().replace(/\r?\n$/, '')
  return { host, text: text.replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, '') }
}
