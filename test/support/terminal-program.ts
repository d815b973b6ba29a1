/** A program on a terminal of its own that asks: what it prints, what is typed, how it ends. */
import { spawnLocalPty } from '../../src/terminal/local-pty.ts'
import { UserTerminal } from './user-terminal.ts'
import { waitUntil } from './wait-until.ts'

const COLUMNS = 120
const ROWS = 30

export function startOnTerminal([file = '', ...args]: readonly string[], environment: NodeJS.ProcessEnv) {
  let text = ''
  let code: number | undefined
  const screen = new UserTerminal(COLUMNS, ROWS)
  const pty = spawnLocalPty(
    {
      file,
      args,
      columns: COLUMNS,
      rows: ROWS,
      term: 'xterm-256color',
      environment: Object.fromEntries(
        Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
      ),
    },
    {
      onData: (bytes) => {
        text += Buffer.from(bytes).toString()
        screen.write(bytes)
      },
      onDrain: () => {},
      onExit: (end) => {
        code = 'code' in end ? end.code : -1
      },
    },
  )
  return {
    pid: pty.pid,
    /** Draws what the program printed. It answers no questions unless `onReply` is set. */
    screen,
    resize(columns: number, rows: number) {
      screen.resize(columns, rows)
      pty.resize(columns, rows)
    },
    text: () => text,
    code: () => code,
    type: (line: string) => pty.write(Buffer.from(line)),
    shows: (pattern: RegExp, timeoutMs?: number) =>
      waitUntil(() => pattern.test(text), `${pattern} in ${text}`, timeoutMs),
    /** As `shows`, but on the emulated screen: programs draw the pieces of a line in any order. */
    draws: (pattern: RegExp) =>
      waitUntil(
        () => screen.isDrawn && pattern.test(screen.lines().join('\n')),
        () => `${pattern} on\n${screen.lines().join('\n')}`,
      ),
    ended: (timeoutMs?: number) => waitUntil(() => code !== undefined, `the end of ${text}`, timeoutMs),
    close: () => pty.close(),
  }
}
