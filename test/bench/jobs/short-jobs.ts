/** How long one job waits on an idle queue, whoever's queue it is. */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** Begun one after the other to count the starts a second of one host. */
export const SHORT_JOBS = 400
const SINGLES = 20
/** Before each: a queue that has just seen a job end may look sooner than one that has rested. */
const LONGEST_REST_MS = 400
const WAIT_LIMIT_MS = 30_000

/**
 * Each job writes when it begins, into a directory that it knows as `inside`; the next one is submitted some time after it has.
 * `places`: where that is, seen from here. The first is not counted: with it others get ready.
 */
export async function startWaits(
  inside: string,
  places: readonly string[],
  submit: (command: string) => Promise<void>,
): Promise<readonly number[]> {
  const results: number[] = []
  for (let index = 0; index <= SINGLES; index++) {
    const name = `began-${index}`
    await submit(`date +%s%N >${inside}/${name}.new && mv ${inside}/${name}.new ${inside}/${name}`)
    const submittedMs = Date.now()
    const untilMs = submittedMs + WAIT_LIMIT_MS
    let file: string | undefined
    while (file === undefined) {
      if (Date.now() > untilMs) throw new Error(`a job did not begin within ${WAIT_LIMIT_MS / 1000} s`)
      await delay(2)
      file = places.map((place) => join(place, name)).find((path) => existsSync(path))
    }
    results.push(Math.max(0, Number(readFileSync(file, 'utf8')) / 1e6 - submittedMs))
    rmSync(file)
    await delay(Math.random() * LONGEST_REST_MS)
  }
  return results.slice(1)
}
