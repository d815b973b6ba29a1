/** Port forwards of the console: opened by a prompt or a line of the palette, listed, closed, and counted when the user quits. */
import { counted } from '../../base/counted.ts'
import { Emitter } from '../../base/emitter.ts'
import { MusterError, sentenceOf } from '../../base/errors.ts'
import type { Fleet } from '../../ssh/create-fleet.ts'
import { leadsTo, listensOn, noteOn } from '../../ssh/forward/describe-forward.ts'
import { formatSocketAddress } from '../../ssh/forward/forward-spec.ts'
import { type Forward, type ForwardEvent, type ForwardRequest, Forwards } from '../../ssh/forward/forwards.ts'
import { DASHBOARDS, isDashboard, type KnownDashboard, planForwards } from '../../ssh/forward/plan-forwards.ts'
import type { DialogFactory, DialogLine } from '../dialogs/dialog.ts'
import { type LineCheck, type PromptCheck, promptDialog } from '../dialogs/prompt-dialog.ts'
import { confirmDialog } from '../dialogs/text-dialog.ts'
import type { Page, PageContext } from '../state/console-state.ts'
import { completeOn, type ResolveHosts } from '../work-views/work-questions.ts'
import { addressOf, forwardsDialog } from './forwards-dialog.ts'
import { type ParsedForward, parseForward, parseForwardLine } from './parse-forward.ts'

export type ForwardsPorts = {
  readonly fleet: Pick<Fleet, 'on' | 'connection' | 'endpoint' | 'session'>
  readonly resolveHosts: ResolveHosts
  /** Where dashboards run, as far as that is known. */
  knownDashboards(): Promise<readonly KnownDashboard[]>
}

const HELP: readonly DialogLine[] = [
  { text: `8265     9000:80     9000:db:5432     ${DASHBOARDS.join(' ')}`, tone: 'muted' },
  { text: 'on m[1-3]: 8265     -L, -R and -D as in ssh', tone: 'muted' },
]

export class ForwardsPanel implements Disposable {
  readonly #context: PageContext
  readonly #ports: ForwardsPorts
  readonly #forwards: Forwards
  /** The list may have changed. */
  readonly #changes = new Emitter<void>()
  #known: readonly KnownDashboard[] = []
  /** Selected when the list is shown. */
  #selected: number | undefined

  constructor(context: PageContext, ports: ForwardsPorts) {
    this.#context = context
    this.#ports = ports
    this.#forwards = new Forwards(ports.fleet, context.clock)
    this.#forwards.on((event) => {
      this.#tell(event)
      this.#changes.emit()
    })
  }

  /** What closing hosts would end; all without `isMeant`. */
  busyOn(isMeant = (_host: string): boolean => true): Page['busy'] {
    const all = this.#forwards.list().filter(({ state, host }) => state.kind !== 'refused' && isMeant(host))
    const hosts = all.map(({ host }) => host)
    return hosts.length === 0 ? [] : [{ title: counted(hosts.length, 'port forward'), hosts: [...new Set(hosts)] }]
  }

  /** The list; without any forward or dashboard there is only the prompt. */
  open(): void {
    this.#learn()
    this.#showList()
  }

  /** A line of the palette; undefined: not a line for forwards. */
  readLine(text: string): LineCheck | undefined {
    const parsed = parseForwardLine(text)
    if (parsed === undefined) return undefined
    return {
      ...this.#check(parsed),
      submit: () => void this.#open(parsed).catch((error: unknown) => this.#context.notice(sentenceOf(error), 'error')),
    }
  }

  [Symbol.dispose](): void {
    this.#forwards[Symbol.dispose]()
  }

  #showList(): void {
    const { clock } = this.#context
    this.#context.openDialog(
      forwardsDialog({
        clock,
        selected: this.#selected,
        list: () => this.#forwards.list(),
        found: () => this.#found(),
        watch: (changed) => this.#changes.on(changed),
        add: () => this.#ask(),
        openFound: ({ name, host }) =>
          void this.#forwards
            .open(planForwards([host], { plain: [name] }, this.#known))
            .catch((error: unknown) => this.#context.notice(sentenceOf(error), 'error')),
        close: (forward) => this.#askToClose(forward),
        copy: (text) => void this.#context.copyText(text, 'from the list'),
      }),
    )
  }

  /** Asks where something runs through it. */
  #askToClose(forward: Forward): void {
    const { id, host, connections } = forward
    const words = `${host}: ${wordsOf(forward)}`
    const close = () => {
      this.#forwards.close(id)
      this.#context.notice(`closed ${words}`)
    }
    if (connections === 0) return close()
    this.#selected = id
    this.#openAbove(
      confirmDialog({
        id: 'close-forward',
        title: `Close this forward and its ${counted(connections, 'connection')}?`,
        lines: [{ text: words }],
        yesTitle: 'close',
        noTitle: 'keep',
        onYes: close,
      }),
    )
  }

  #ask(): void {
    const { focus = '' } = this.#context.state
    const make = promptDialog({
      id: 'forward',
      title: `Forward a port of ${focus}`,
      label: 'Port:',
      submitTitle: 'forward',
      help: HELP,
      complete: completeOn,
      check: (text) => this.#check(parseForward(text)),
      staysOpen: true,
      onSubmit: async (text) => await this.#open(parseForward(text)),
    })
    this.#openAbove(make)
  }

  /** Esc, too, goes back to the list: a second one would be typed into the hosts. */
  #openAbove(make: DialogFactory): void {
    this.#context.openDialog((report) => {
      let isReplaced = false
      const onClose = () => {
        report.onClose()
        if (!isReplaced) this.#showList()
      }
      const dialog = make({ ...report, onClose })
      const cancel = () => {
        isReplaced = true
        dialog.cancel()
      }
      return { ...dialog, cancel }
    })
  }

  /** In the background: the queue is a file. */
  #learn(): void {
    this.#ports.knownDashboards().then(
      (known) => {
        this.#known = known
        this.#changes.emit()
      },
      (error: unknown) => this.#context.log('', `cannot look for dashboards: ${sentenceOf(error)}`, 'warning'),
    )
  }

  /** Those that could be forwarded. */
  #found(): readonly KnownDashboard[] {
    const all = this.#forwards.list()
    const isForwarded = ({ host, at }: KnownDashboard) =>
      all.some(
        ({ host: own, spec }) =>
          own === host && spec.kind === 'local' && formatSocketAddress(spec.to) === formatSocketAddress(at),
      )
    return this.#known.filter((each) => this.#context.state.hosts.has(each.host) && !isForwarded(each))
  }

  #check(parsed: ParsedForward): PromptCheck {
    if ('error' in parsed) return parsed
    try {
      return {
        preview: this.#plan(parsed)
          .slice(0, 6)
          .map((request) => ({ text: previewOf(request), tone: 'ok' })),
      }
    } catch (error) {
      return { error: sentenceOf(error) }
    }
  }

  async #open(parsed: ParsedForward): Promise<void> {
    if ('error' in parsed) return
    const opened = await this.#forwards.open(this.#plan(parsed))
    this.#selected = opened.at(-1)?.id
  }

  /** @throws MusterError */
  #plan(parsed: Exclude<ParsedForward, { error: string }>): readonly ForwardRequest[] {
    return planForwards(this.#hostsOf(parsed), parsed.words, this.#known)
  }

  #hostsOf({ target, words }: Exclude<ParsedForward, { error: string }>): readonly string[] {
    const { hosts, groups, focus } = this.#context.state
    if (target !== undefined) return this.#ports.resolveHosts(target, [...hosts.keys()], groups)
    const [name, ...others] = [
      ...words.plain,
      ...(words.local ?? []),
      ...(words.remote ?? []),
      ...(words.dynamic ?? []),
    ]
    const places = this.#known.filter((each) => each.name === name && hosts.has(each.host))
    const [place] = places
    if (others.length === 0 && isDashboard(name ?? '') && place && !places.some(({ host }) => host === focus))
      return [place.host]
    if (focus === undefined) throw new MusterError('usage', 'no hosts', { hint: 'Add one first.' })
    return [focus]
  }

  #tell(event: ForwardEvent): void {
    const { forward } = event
    switch (event.type) {
      case 'opened':
        return this.#context.log(forward.host, `forward: ${wordsOf(forward)}`)
      case 'served': {
        const note = noteOn(forward)
        return this.#context.notice(`${forward.host}: ${wordsOf(forward)}${note === undefined ? '' : ` (${note})`}`)
      }
      case 'closed':
        return this.#context.log(forward.host, `forward closed: ${wordsOf(forward)}`)
      case 'refused':
      case 'trouble':
        this.#context.log(forward.host, event.reason, 'warning')
        return this.#context.notice(`${forward.host}: ${event.reason}`, 'warning')
      case 'lost':
        return this.#context.log(forward.host, `forward waits for the host: ${wordsOf(forward)}`, 'warning')
    }
  }
}

const wordsOf = (forward: Forward): string =>
  `${forward.spec.kind === 'local' ? addressOf(forward) : listensOn(forward)} → ${leadsTo(forward)}`

function previewOf({ host, spec, title }: ForwardRequest): string {
  const listen = formatSocketAddress(spec.listen)
  if (spec.kind === 'dynamic') return `${host}: SOCKS 5 on ${listen}`
  const to = formatSocketAddress(spec.to)
  if (spec.kind === 'remote') return `${host}: ${listen} there → ${to} here`
  return `${host}: ${listen} → ${to}${title === undefined ? '' : ` (${title})`}`
}
