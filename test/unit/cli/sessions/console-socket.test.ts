/** The socket of a console that lasts longer than its directory. */
import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { ConsoleSocket } from '../../../../src/cli/sessions/console-socket.ts'
import { markOf } from '../../../../src/cli/sessions/session-directory.ts'
import { readToken } from '../../../../src/ssh/persist/keeper-directory.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const HOUR_MS = 3_600_000
const LONG_AGO = new Date('2020-01-01')

let directory: string
let clock: ManualClock
let given: Buffer | undefined
let opened: number
const errors: unknown[] = []
let own: ConsoleSocket

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'muster-socket-'))
  clock = new ManualClock()
  opened = 0
  errors.length = 0
  own = new ConsoleSocket({
    environment: { MUSTER_RUNTIME_DIR: directory },
    cluster: 'lab',
    accept(socket, token) {
      given = token
      socket.destroy()
    },
    onOpen() {
      opened += 1
    },
    onError: (error) => errors.push(error),
    clock,
  })
  await own.opening
})
afterEach(() => {
  own[Symbol.dispose]()
  rmSync(directory, { recursive: true, force: true })
})

const isAnswered = () =>
  new Promise((resolve) => {
    const socket = connect(own.address ?? '')
    socket.once('close', () => resolve(true)).once('error', () => resolve(false))
  })

it('is made again, with a new secret, after its directory was removed', async () => {
  rmSync(join(directory, 'muster'), { recursive: true })
  own.check()
  expect(own.address).toBeUndefined()
  await own.opening
  expect(await isAnswered()).toBe(true)
  expect(given).toEqual(await readToken(join(directory, 'muster')))
  expect([opened, errors]).toEqual([2, []])
})

it('is found missing within an hour', async () => {
  rmSync(own.address ?? '')
  clock.advance(HOUR_MS)
  await waitUntil(() => opened === 2, 'the socket to be made again')
  expect(await isAnswered()).toBe(true)
})

it('is tried again an hour later if it cannot be made', async () => {
  const place = join(directory, 'muster')
  rmSync(place, { recursive: true })
  writeFileSync(place, '')
  own.check()
  await own.opening
  expect([own.address, String(errors)]).toEqual([undefined, expect.stringContaining('is not a directory')])
  rmSync(place)
  clock.advance(HOUR_MS)
  await waitUntil(() => opened === 2, 'the socket to be made again')
  expect(await isAnswered()).toBe(true)
})

it('keeps its files young, and leaves none but the secret', async () => {
  const files = [join(directory, 'muster', 'token'), markOf(own.address ?? '')]
  writeFileSync(files[1] ?? '', '')
  for (const file of files) utimesSync(file, LONG_AGO, LONG_AGO)
  clock.advance(HOUR_MS)
  const isYoung = (file: string): boolean => statSync(file).mtimeMs > LONG_AGO.getTime()
  await waitUntil(() => files.every(isYoung), 'the files to be young')
  rmSync(files[1] ?? '')
  own[Symbol.dispose]()
  expect(readdirSync(join(directory, 'muster'))).toEqual(['token'])
})
