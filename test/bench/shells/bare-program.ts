/**
 * A process of the benchmark: a key to all hosts over the product's way to use ssh2, and its echo from all of them, without
 * emulators, a screen or anything else. With worker threads, each has its share of the connections; keys and counts are in
 * shared memory.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import type { ClientChannel } from 'ssh2'
import type * as Library from '../../../src/ssh/ssh2/library.ts'

type Share = {
  build: string
  ports: readonly number[]
  keyFile: string
  user: string
  prompt: string
  memory: Int32Array
}

/** Places in the shared memory: a counter that wakes the workers, the key, the echoes (or prompts) so far, and how many are due. */
const TYPED = 0
const KEY = 1
const SEEN = 2
const DUE = 3
const ALL = 4
const ERASE_LINE = 0x15

/** Opens a shell on each port; the result sends a key to all of them. */
async function openShare({ build, ports, keyFile, user, prompt, memory }: Share): Promise<(key: number) => void> {
  const { Client, refinePackets, sendAtOnce, consumeWith } = (await import(
    `${build}/dist/ssh/ssh2/library.js`
  )) as typeof Library
  const see = () => {
    if (Atomics.add(memory, SEEN, 1) + 1 !== memory[DUE]) return
    Atomics.store(memory, ALL, 1)
    Atomics.notify(memory, ALL)
  }
  const privateKey = readFileSync(keyFile)
  const open = async (port: number) => {
    const client = new Client()
    const ready = Promise.withResolvers<void>()
    client.on('ready', ready.resolve).on('error', ready.reject)
    client.connect({ host: '127.0.0.1', port, username: user, privateKey, hostVerifier: () => true })
    refinePackets(client)
    await ready.promise
    client.setNoDelay(true)
    const channel = await new Promise<ClientChannel>((resolve, reject) =>
      client.shell({ term: 'xterm-256color' }, (error, opened) => (error ? reject(error) : resolve(opened))),
    )
    const consumed = consumeWith(client, channel, 2 ** 21)
    let awaited: string | number | undefined = prompt
    channel.on('data', (bytes: Buffer) => {
      consumed(bytes.length)
      if (awaited === undefined || !bytes.includes(awaited)) return
      awaited = undefined
      see()
    })
    return (key: number) => {
      if (key !== ERASE_LINE) awaited = key
      if (!sendAtOnce(client, channel, Buffer.of(key))) throw new Error('a key did not fit in the window')
    }
  }
  const shells = await Promise.all(ports.map(open))
  return (key) => {
    for (const send of shells) send(key)
  }
}

if (isMainThread) {
  const [build = '', keyFile = '', user = '', prompt = '', ports = '', workers = '0', keys = '0'] =
    process.argv.slice(2)
  const all = ports.split(',').map(Number)
  const memory = new Int32Array(new SharedArrayBuffer(32))
  const awaitAll = async () => {
    const { async: isPending, value } = Atomics.waitAsync(memory, ALL, 0)
    if (isPending) await value
  }
  memory[DUE] = all.length
  const count = Number(workers)
  const share = (at: number): Share => ({
    build,
    ports: all.filter((_, index) => index % Math.max(1, count) === at),
    keyFile,
    user,
    prompt,
    memory,
  })
  let type: (key: number) => void
  if (count === 0) type = await openShare(share(0))
  else {
    for (let at = 0; at < count; at++) new Worker(new URL(import.meta.url), { workerData: share(at) })
    type = (key) => {
      memory[KEY] = key
      Atomics.add(memory, TYPED, 1)
      Atomics.notify(memory, TYPED)
    }
  }
  await awaitAll()
  await delay(500)
  const times: number[] = []
  for (let index = 0; index < Number(keys); index++) {
    memory[SEEN] = 0
    memory[ALL] = 0
    const start = performance.now()
    type('QXZJVW'.charCodeAt(index % 6))
    await awaitAll()
    times.push(performance.now() - start)
    await delay(5)
    type(ERASE_LINE)
    await delay(20 + Math.random() * 60)
  }
  process.stdout.write(`${JSON.stringify(times)}\n`, () => process.exit(0))
} else {
  const share = workerData as Share
  const { memory } = share
  const type = await openShare(share)
  let typed = Atomics.load(memory, TYPED)
  for (;;) {
    const { async: isPending, value } = Atomics.waitAsync(memory, TYPED, typed)
    if (isPending) await value
    typed = Atomics.load(memory, TYPED)
    type(memory[KEY] ?? 0)
  }
}
