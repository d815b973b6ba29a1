/** Assembles the console on a terminal: input, hosts, pages, chrome, compositor; and disposes of all of it. */
import { basename } from 'node:path'
import { isUtf8Locale } from '../base/ascii.ts'
import { type Clock, sleep, systemClock } from '../base/clock.ts'
import { defined } from '../base/defined.ts'
import { DisposableStore } from '../base/disposable.ts'
import { printable } from '../base/printable.ts'
import type { Endpoint } from '../inventory/host.ts'
import type { ColourDepth } from './compositor/colours.ts'
import { Compositor } from './compositor/compositor.ts'
import { backgroundOf, guessTheme, type ThemeName } from './compositor/scene.ts'
import { ChangedFiles, type ChangingFile } from './console/changed-files.ts'
import { ThrottledChrome } from './console/chrome-source.ts'
import { ConsoleApp, type ConsoleOptions, type ConsolePorts } from './console/console-app.ts'
import { type DeclaredNames, takeDeclared } from './console/declared.ts'
import { Questions } from './console/dialogs.ts'
import { Faults } from './console/faults.ts'
import { InputRouter } from './console/input-router.ts'
import { createObserver, type ObserverPort, observe } from './console/observer.ts'
import { buildScene } from './console/pane-view.ts'
import { InputDecoder, type InputEvent } from './keys/decode-input.ts'
import type { Preferences } from './preferences.ts'
import { createPages, type PagePorts } from './tabs/create-pages.ts'
import { watchOwnPane } from './tty/own-pane.ts'
import { enterTerminal, type HostProcess, mouseSequence } from './tty/terminal-session.ts'
import { TtyWriter } from './tty/tty-writer.ts'
import { VirtualStdout } from './tty/virtual-terminal.ts'

/** The terminal that a console is on, and what its environment says about it. */
export type ConsoleTerminal = {
  readonly colourDepth: ColourDepth
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream & { readonly fd: number }
  readonly environment: Readonly<Record<string, string | undefined>>
  /** In place of this process, which is not the one that the terminal's shell waits for. */
  readonly process?: HostProcess
}

/** The console, as the code that moves it between terminals sees it. */
export type DetachableConsole = {
  /** Gives the terminal back; everything else continues. */
  detach(): void
  /**
   * The earlier terminal must have been given back. `onOwnPane` is called if the new one is a pane of this console. `isTypedAhead`:
   * something was typed there before, and dropped.
   */
  attach(terminal: ConsoleTerminal, onOwnPane: (host: string) => void, isTypedAhead: boolean): void
  quit(): void
  /** Shows the message, and writes it to the Log. */
  notice(message: string): void
  describe(): { readonly hosts: readonly string[]; readonly shells: number }
}

/** Keeps a console open without a terminal. */
export interface Detachment {
  /** Until it is disposed of. */
  open(console: DetachableConsole): Disposable
  /** Returns why that is impossible; undefined: done. `cause`: why the console detaches, unless the user asked for it. */
  detach(cause?: string): string | undefined
  /** The terminal is gone: returns whether the console continues without it. */
  lose(): boolean
}

export type OpenConsoleOptions = Pick<
  ConsolePorts,
  'resolveHosts' | 'resolveNewHosts' | 'declaredHosts' | 'saveGroup' | 'promptHistory' | 'listFiles'
> &
  Pick<ConsoleOptions, 'cluster' | 'hosts' | 'groups' | 'preferences'> &
  Pick<PagePorts, 'ownMachine'> &
  ConsoleTerminal & {
    /** How the hosts are reached. Their panes are shown before this is known. */
    readonly endpoints: Promise<readonly Endpoint[]>
    /** Read again when it has changed. @throws MusterError while it is wrong */
    readonly preferencesFile?: { readonly path: string; read(): Preferences }
    /** The same for hosts.yaml; `names`: what it declares now. */
    readonly hostsFiles?: { readonly paths: readonly string[]; names(): DeclaredNames; reload(): Promise<void> }
    /** Undefined: the console ends with its terminal. */
    readonly detachment?: Detachment
    /** Closes the console as `quit` does. */
    readonly signal: AbortSignal
    /** The fleet that asks its questions on this console, and what works over it. What they depend on is given to `own` and disposed of after them. */
    createFleet(
      questions: Pick<Questions, 'ask' | 'review' | 'warn'>,
      own: (below: Disposable) => void,
    ): Pick<ConsolePorts, 'fleet' | 'shellPrograms'> &
      Pick<PagePorts, 'work' | 'netTests' | 'knownDashboards' | 'files'>
  }

/** A lone Esc counts as the key after this long. */
const ESCAPE_MS = 25
/** The rest of a key may come so long after its Esc. */
const LATE_MS = 500
/** A paste that stalls for this long has lost its end. */
const PASTE_MS = 3000
const QUERY_BACKGROUND = '\x1b]11;?\x1b\\'

/** Resolves when the console is closed and the terminal is as it was. */
export async function openConsole(options: OpenConsoleOptions): Promise<void> {
  const { stdout, environment, detachment, hostsFiles } = options
  let { preferences } = options
  const clock: Clock = systemClock
  using owned = new DisposableStore()
  const done = Promise.withResolvers<void>()
  const quit = (): void => done.resolve()

  const size = { columns: stdout.columns || 80, rows: stdout.rows || 24 }
  const themeOn = (terminal: ConsoleTerminal): ThemeName => {
    if (terminal.colourDepth === 'none') return 'none'
    return preferences.theme === 'auto' ? guessTheme(terminal.environment) : preferences.theme
  }
  let themeName = themeOn(options)
  const questions = new Questions()
  const { fleet, shellPrograms, ...pagePorts } = options.createFleet(questions, (below) => void owned.own(below))
  owned.own(fleet)
  const writer = owned.own(new TtyWriter(stdout))
  const compositor = owned.own(
    new Compositor({ writer, clock, colourDepth: options.colourDepth, isUtf8: isUtf8Locale(environment) }),
  )

  let isConnecting = false
  let isChromeThere = false
  let isScenePlanned = false
  const drawScene = (): void => {
    isScenePlanned = false
    const scene = buildScene(app, chrome.grid, source.state(), faults.note)
    app.drawn = scene.panes
    compositor.setScene(scene)
  }
  const planScene = (): void => {
    if (isScenePlanned) return
    isScenePlanned = true
    setImmediate(drawScene)
  }

  const app: ConsoleApp = owned.own(
    new ConsoleApp(
      {
        ...options,
        themeName,
        size,
        fileTitles: pagePorts.files.flatMap(({ file }) => file?.title ?? []),
        onTyped: (hosts) => compositor.awaitEchoes(hosts),
        onPaneChange: (host, isEcho) => (isEcho ? compositor.invalidateNow([host]) : compositor.invalidate(host)),
        onFramesChange: planScene,
        onRedraw: () => compositor.redraw(),
        onSequence: (bytes) => void writer.write(bytes),
        onQuit: quit,
        detach: () => (detachment ? detachment.detach() : 'this console ends with its terminal'),
        createParts: (context) => createPages(context, { ...options, ...pagePorts, fleet }),
      },
      { ...options, fleet, clock, ...defined({ shellPrograms }) },
    ),
  )
  const faults = new Faults(app, clock)
  const source = owned.own(new ThrottledChrome(app, clock))
  const chrome = owned.own(new VirtualStdout({ ...size, onDraw: planScene }))
  owned.own(app.store.on(planScene))

  const decoder = new InputDecoder()
  const router = new InputRouter(app)
  let inputBytes = 0
  /** When it was attached to its terminal; undefined: it was opened there. */
  let framesBefore: number | undefined
  let escapeTimer: Disposable | undefined
  /** What is typed before the terminal shows the console goes nowhere. */
  const route = (events: readonly InputEvent[]): void => {
    if (compositor.framesWritten !== framesBefore) router.handle(events)
    else if (events.some(({ type }) => type !== 'report')) router.noteTypedAhead()
  }
  const handleInput = (bytes: Uint8Array): void => {
    escapeTimer?.[Symbol.dispose]()
    const events = decoder.push(bytes)
    for (const event of events) if (event.type === 'report') takeReport(event.raw)
    try {
      route(events)
    } catch (error) {
      faults.note(error)
    }
    inputBytes += bytes.length
    if (decoder.isWaiting || decoder.isPasting) {
      escapeTimer = clock.after(decoder.isPasting ? PASTE_MS : ESCAPE_MS, () => {
        route(decoder.isPasting ? decoder.endPaste() : decoder.flush())
        source.showNow()
        if (decoder.hasCut) escapeTimer = clock.after(LATE_MS, () => decoder.forgetCut())
      })
    }
    source.showNow()
  }
  const takeReport = (raw: Uint8Array): void => {
    const background = preferences.theme === 'auto' && themeName !== 'none' ? backgroundOf(raw) : undefined
    if (background) app.change(() => ({ themeName: background }))
  }

  let terminal: ConsoleTerminal = options
  let session: DisposableStore | undefined
  const leave = (): void => {
    session?.[Symbol.dispose]()
    session = undefined
  }
  /** While there is no terminal, an uncaught error must not end the console: what runs in it matters more. */
  const leaveForNow = (): void => {
    leave()
    session = new DisposableStore()
    for (const event of ['uncaughtException', 'unhandledRejection']) {
      process.on(event, faults.note)
      session.defer(() => process.off(event, faults.note))
    }
  }
  /** A console may move from one terminal to another. */
  const enter = (next: ConsoleTerminal): void => {
    terminal = next
    inputBytes = 0
    const earlierBytes = writer.bytesWritten
    session = new DisposableStore()
    session.own(
      enterTerminal({
        ...terminal,
        writer,
        get mouse() {
          return preferences.mouse
        },
        onInput: handleInput,
        onResize: resize,
        onResume: () => compositor.redraw(),
        onFatal: quit,
        onLost: () => detachment?.lose() ?? false,
        onFault: (error) =>
          faults.noteUncaught(error) ||
          (detachment !== undefined && detachment.detach('too many errors in Muster, see the Log') === undefined),
        onPrint: (text) => app.log('', printable(text), 'info'),
      }),
    )
    askBackground()
    if (terminal.environment.MUSTER_OBSERVER)
      session.own(createObserver(terminal.environment.MUSTER_OBSERVER, observerPort(earlierBytes)))
  }
  const askBackground = (): void => {
    if (preferences.theme === 'auto' && themeName !== 'none') writer.write(Buffer.from(QUERY_BACKGROUND))
  }
  const resize = (columns: number, rows: number): void => {
    chrome.resize(columns, rows)
    app.resize(columns, rows)
    source.showNow()
  }
  const attach = (next: ConsoleTerminal, onOwnPane: (host: string) => void, isTypedAhead: boolean): void => {
    const { stdout, colourDepth } = next
    leave()
    framesBefore = compositor.framesWritten
    writer.moveTo(stdout)
    themeName = themeOn(next)
    app.change(() => ({ themeName }))
    enter(next)
    session?.own(watchOwnPane({ fleet, clock, write: (bytes) => void writer.write(bytes), onFound: onOwnPane }))
    compositor.setTerminal(colourDepth, isUtf8Locale(next.environment))
    resize(stdout.columns || 80, stdout.rows || 24)
    if (isTypedAhead) router.noteTypedAhead()
  }
  // Given to the terminal so far: a test waits for all of it, since the observer's socket may be ahead of the terminal.
  const observerPort = (earlierBytes: number): ObserverPort => ({
    isIdle: () =>
      app.isIdle &&
      app.comparison.isIdle &&
      source.isIdle &&
      compositor.isIdle &&
      !isScenePlanned &&
      isConnecting &&
      isChromeThere &&
      !decoder.isWaiting,
    observe: () => ({
      inputBytes,
      outputBytes: writer.bytesWritten - earlierBytes,
      frames: compositor.framesWritten,
      ...observe(app),
    }),
  })

  enter(options)
  owned.defer(leave)
  const warn = (message: string): void => {
    app.log('', message, 'warning')
    app.notice(message, 'warning')
  }
  questions.bind(app, warn)
  for (const warning of preferences.warnings ?? []) warn(`preferences.yaml, ${warning}`)
  const opened = detachment?.open({
    detach: leaveForNow,
    attach,
    quit,
    notice: (message) => {
      app.log('', message)
      app.notice(message)
    },
    describe: () => {
      const hosts = [...app.state.hosts.values()]
      return { hosts: hosts.map(({ host }) => host), shells: hosts.filter(({ shell }) => shell.kind === 'open').length }
    },
  })
  if (opened) owned.own(opened)
  drawScene()
  // Let the timer of the first frame run.
  await sleep(clock, 0)
  options.endpoints
    .then((endpoints) => {
      app.connectFirst(endpoints)
      isConnecting = true
    })
    .catch(done.reject)
  // While Ink loads, servers answer the first connections, or `ssh -G` runs.
  await sleep(clock, 0)
  const { drawChrome } = await import('./components/draw-chrome.tsx')
  owned.own(
    drawChrome({
      source,
      stdout: chrome.stream,
      clock,
      onFault: faults.note,
      // A component that throws must not leave an empty screen without a message.
      onEnd: done.reject,
    }),
  )
  isChromeThere = true
  const takePreferences = (next: Preferences): string | undefined => {
    const before = preferences
    preferences = next
    const news = app.takePreferences(next)
    if (next.mouse !== before.mouse) writer.write(mouseSequence(next.mouse))
    if (next.theme !== before.theme) {
      themeName = themeOn(terminal)
      app.change(() => ({ themeName }))
      askBackground()
    }
    return news
  }
  const { preferencesFile: file } = options
  const changing: ChangingFile[] = [
    ...(file === undefined ? [] : [{ path: file.path, read: async () => takePreferences(file.read()) }]),
    ...(hostsFiles?.paths ?? []).map((path) => ({
      path,
      async read() {
        const before = hostsFiles?.names()
        await hostsFiles?.reload()
        const now = hostsFiles?.names()
        return before && now && takeDeclared(app, basename(path), before, now)
      },
    })),
  ]
  const changed = owned.own(new ChangedFiles(app, changing))
  app.readFiles = async () => {
    await changed.check(true)
    return changed.refusal(hostsFiles?.paths ?? [])
  }

  if (options.signal.aborted) quit()
  options.signal.addEventListener('abort', quit, { once: true })
  await done.promise
  options.signal.removeEventListener('abort', quit)
}
