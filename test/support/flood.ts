/** A program on this machine that writes without end, seen from outside. */
import { readFileSync } from 'node:fs'
import { waitUntil } from './wait-until.ts'

/** Equal readings in a row, 5 ms apart: a program that may write does so between two of them. */
const EQUAL_READINGS = 40

/** Resolves when the process writes nothing any more, because nothing reads from it. */
export async function untilHeldBack(pid: number): Promise<void> {
  let [before, equal] = [writtenBytes(pid), 0]
  await waitUntil(() => {
    const now = writtenBytes(pid)
    equal = now === before ? equal + 1 : 0
    before = now
    return equal === EQUAL_READINGS
  }, `process ${pid} to stop writing`)
}

function writtenBytes(pid: number): number {
  return Number(/^wchar: (\d+)/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])
}
