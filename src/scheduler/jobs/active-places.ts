/** Where the jobs of a queue run that is not opened otherwise. */
import { DatabaseSync } from 'node:sqlite'
import { ACTIVE_KINDS } from './job.ts'

const MOST_PLACES = 1000

const PLACES = `
  SELECT DISTINCT jobs.id AS id, json_extract(place.value, '$.address') AS address
  FROM jobs, json_each(jobs.state, '$.places') AS place
  WHERE kind IN (${ACTIVE_KINDS.map((kind) => `'${kind}'`).join()}) LIMIT ${MOST_PLACES}`

/** Of each active job, the addresses that it was placed at, at most 1000. Changes nothing; empty where the file cannot be read. */
export function activePlaces(path: string) {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { readOnly: true })
    return database.prepare(PLACES).all()
  } catch {
    return []
  } finally {
    database?.close()
  }
}
