/**
 * A small program on a terminal, for the tests of what it leaves behind: `node terminal-program-fixture.ts WAY`. It says `ready:PID;`
 * when it has taken the terminal, and takes its way when it gets SIGUSR1.
 */
import { enterTerminal } from '../../../src/ui/tty/terminal-session.ts'
import { TtyWriter } from '../../../src/ui/tty/tty-writer.ts'

const way = process.argv[2]
const writer = new TtyWriter(process.stdout)
const say = (text: string) => writer.write(Buffer.from(`${text};`))
const closed = Promise.withResolvers<void>()

const session = enterTerminal({
  stdin: process.stdin,
  stdout: process.stdout,
  writer,
  mouse: way !== 'no-mouse',
  onInput: (bytes) => say(`input:${Buffer.from(bytes).toString('hex')}`),
  onResize: (columns, rows) => say(`size:${columns}x${rows}`),
  onResume: () => say('resumed'),
  onFatal() {
    say('never seen')
    if (way !== 'hang') closed.resolve()
  },
})

process.on('SIGUSR1', () => {
  if (way === 'throw') throw new Error('thrown on purpose')
  if (way === 'reject') void Promise.reject(new Error('rejected on purpose'))
  if (way === 'exit') process.exit(5)
  if (way === 'dispose') closed.resolve()
  if (way === 'flood') {
    writer.write(Buffer.alloc(40_000_000, 'x'))
    // It ends only when nothing is left to be written.
    process.exitCode = writer.isDraining ? 7 : 8
    closed.resolve()
  }
})
say(`ready:${process.pid}`)

// Until then a timer keeps the program alive, as a console's does.
const alive = setInterval(() => {}, 1000)
await closed.promise
clearInterval(alive)
session[Symbol.dispose]()
writer[Symbol.dispose]()
