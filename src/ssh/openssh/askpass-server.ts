/** SSH_ASKPASS names a program that carries questions to this process, so that no prompt is in a terminal with broadcast keys. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Secret } from '../../base/secret.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { createPrivateDirectory } from '../private-directory.ts'

/** Undefined: no answer; ssh continues without one or gives up. */
export type Answerer = (text: string, promptKind: string | undefined) => Promise<Secret | undefined>

export type AskpassServer = Awaited<ReturnType<typeof startAskpassServer>>

/** Runs under this very Node: one line of JSON each way. An exit status other than 0 is 'no answer'. */
const HELPER = `
import { connect } from 'node:net'
const { MUSTER_ASKPASS_SOCKET, MUSTER_ASKPASS_TOKEN, SSH_ASKPASS_PROMPT } = process.env
const socket = connect(MUSTER_ASKPASS_SOCKET)
let reply = ''
socket.on('error', () => process.exit(1))
socket.on('data', (bytes) => { reply += bytes })
socket.on('end', () => {
  const answer = reply === '' ? undefined : JSON.parse(reply).answer
  if (answer === undefined) process.exit(1)
  process.stdout.write(answer + '\\n')
})
socket.write(JSON.stringify({ token: MUSTER_ASKPASS_TOKEN, text: process.argv[2] ?? '', kind: SSH_ASKPASS_PROMPT }) + '\\n')
`

/** The longest that an address of a Unix socket may be on macOS, less what ssh adds to a control path for a moment. */
const LONGEST_DIRECTORY = 104 - 30

/** ssh hands a question over as an argument, which Linux limits to 128 KiB; JSON makes more of it. */
const LONGEST_QUESTION = 1024 * 1024

export async function startAskpassServer() {
  let directory = await createPrivateDirectory('muster-ssh-')
  if (directory.path.length > LONGEST_DIRECTORY) {
    directory[Symbol.dispose]()
    directory = await createPrivateDirectory('muster-ssh-', '/tmp')
  }
  const helper = join(directory.path, 'askpass.mjs')
  const program = join(directory.path, 'askpass')
  const address = join(directory.path, 'ask')
  const answerers = new Map<string, Answerer>()
  await writeFile(helper, HELPER, { mode: 0o600 })
  await writeFile(program, `#!/bin/sh\nexec ${shellQuote(process.execPath)} ${shellQuote(helper)} "$@"\n`, {
    mode: 0o700,
  })

  const server = createServer((socket) => {
    let line = ''
    socket.on('error', () => socket.destroy())
    socket.setEncoding('utf8').on('data', function read(text: string) {
      line += text
      if (line.length > LONGEST_QUESTION) return void socket.destroy()
      if (!line.includes('\n')) return
      socket.off('data', read)
      void reply(socket, line, answerers)
    })
  })
  // A question that cannot be accepted has no answer.
  server.on('error', () => {})
  await once(server.listen(address), 'listening')
  server.unref()

  return {
    directory: directory.path,
    /** Questions of the processes with this environment go to `answer`, until disposed of. */
    register(answer: Answerer): Disposable & { readonly environment: Readonly<Record<string, string>> } {
      const token = randomBytes(16).toString('hex')
      answerers.set(token, answer)
      return {
        environment: {
          SSH_ASKPASS: program,
          SSH_ASKPASS_REQUIRE: 'force',
          MUSTER_ASKPASS_SOCKET: address,
          MUSTER_ASKPASS_TOKEN: token,
        },
        [Symbol.dispose]: () => answerers.delete(token),
      }
    },
    [Symbol.dispose]() {
      answerers.clear()
      server.close()
      directory[Symbol.dispose]()
    },
  }
}

async function reply(socket: Socket, line: string, answerers: ReadonlyMap<string, Answerer>): Promise<void> {
  try {
    const { token, text, kind } = JSON.parse(line) as { token?: string; text?: string; kind?: string }
    const answer = await answerers.get(token ?? '')?.(text ?? '', kind)
    if (answer === undefined) socket.end()
    else socket.end(JSON.stringify({ answer: answer.reveal() }))
  } catch {
    // A question that cannot be read or answered has no answer.
    socket.end()
  }
}
