/**
 * What the driver needs of a console, and nothing more: two panes that show what was typed, later than it came; `quit`
 * (Ctrl-] q) ends it, `late` makes m2 show an answer after it came to rest.
 */
import { connect } from 'node:net'

const LATE_MS = 50
const WIDTH = 20
const HEIGHT = 3

const socket = connect(process.env.MUSTER_OBSERVER ?? '')
let typed = ''
let answer = ''
let frames = 0
let outputBytes = 0

const pane = (host: string, column: number) => ({ host, hosts: [host], column, row: 1, width: WIDTH, height: HEIGHT })

function draw(): void {
  frames += 1
  const size = `${process.stdout.columns}x${process.stdout.rows}`
  const visible = JSON.stringify(typed).slice(1, -1)
  const picture = `\x1b[H\x1b[2Jheader ${size}\x1b[2;1Hm1:${visible}\x1b[2;${WIDTH + 1}Hm2:${visible}${answer}`
  process.stdout.write(picture)
  outputBytes += Buffer.byteLength(picture)
  const inputBytes = Buffer.byteLength(typed)
  const hosts = ['m1', 'm2'].map((host) => ({ host, session: 'ready', shell: 'open' }))
  const panes = [pane('m1', 0), pane('m2', WIDTH)]
  const state = {
    idle: true,
    inputBytes,
    outputBytes,
    hostBytes: 0,
    frames,
    mode: 'shells',
    page: 0,
    pages: 1,
    receivers: ['m1', 'm2'],
    panes,
    hosts,
  }
  socket.write(`${JSON.stringify({ type: 'state', ...state })}\n`)
}

process.stdin.setRawMode(true)
process.stdin.setEncoding('utf8').on('data', (text: string) => {
  setTimeout(() => {
    typed += text
    if (typed.includes('\x1dq')) process.exit(7)
    if (typed.endsWith('late')) {
      setTimeout(() => {
        answer = ' answer'
        draw()
      }, LATE_MS)
    }
    draw()
  }, LATE_MS)
})
process.stdout.on('resize', draw)
socket.once('connect', draw)
