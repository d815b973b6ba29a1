/**
 * The first jobs of one kind, kept from one look to the next: a queue of many is read anew when somebody else wrote, when jobs
 * have come, or when half of what was read has gone.
 */
import type { Job } from './job.ts'

export class KeptList {
  #jobs: readonly Job[] | undefined
  #version = -1
  #limit = 0
  #isAll = false

  /** `version` changes with each write of others; `limit` 0: all. */
  read(version: number, limit: number, load: () => readonly Job[]): readonly Job[] {
    const isEnough = this.#isAll || (this.#jobs?.length ?? 0) * 2 >= limit
    if (this.#jobs !== undefined && this.#version === version && this.#limit === limit && isEnough) return this.#jobs
    this.#jobs = load()
    this.#version = version
    this.#limit = limit
    this.#isAll = limit === 0 || this.#jobs.length < limit
    return this.#jobs
  }

  remove(ids: ReadonlySet<number>): void {
    if (ids.size > 0) this.#jobs = this.#jobs?.filter(({ id }) => !ids.has(id))
  }

  forget(): void {
    this.#jobs = undefined
  }
}
