/** What was read of a queue, kept from one look to the next; read anew when somebody else wrote. */
import { isActive, type Job } from './job.ts'

/** All that are on hosts. */
export class KeptActive {
  #jobs: Map<number, Job> | undefined
  #list: readonly Job[] | undefined
  #version = -1

  /** By number. `version` changes with each write of others. */
  read(version: number, load: () => readonly Job[]): readonly Job[] {
    if (this.#version !== version) this.forget()
    this.#jobs ??= new Map(load().map((job) => [job.id, job]))
    this.#version = version
    this.#list ??= [...this.#jobs.values()].toSorted((one, other) => one.id - other.id)
    return this.#list
  }

  find(version: number, id: number): Job | undefined {
    return this.#version === version ? this.#jobs?.get(id) : undefined
  }

  /** As it is now. */
  note(job: Job): void {
    this.#list = undefined
    if (isActive(job.state)) this.#jobs?.set(job.id, job)
    else this.#jobs?.delete(job.id)
  }

  forget(): void {
    this.#jobs = undefined
    this.#list = undefined
  }
}

/** The first jobs of one kind, also read anew when jobs have come, or when half of what was read has gone. */
export class KeptList {
  #jobs: readonly Job[] | undefined
  #version = -1
  #limit = 0
  #isAll = false

  read(version: number, limit: number, load: () => readonly Job[]): readonly Job[] {
    const isEnough = this.#isAll || (this.#jobs?.length ?? 0) * 2 >= limit
    if (this.#jobs !== undefined && this.#version === version && this.#limit === limit && isEnough) return this.#jobs
    this.#jobs = load()
    this.#version = version
    this.#limit = limit
    this.#isAll = this.#jobs.length < limit
    return this.#jobs
  }

  remove(ids: ReadonlySet<number>): void {
    if (ids.size > 0) this.#jobs = this.#jobs?.filter(({ id }) => !ids.has(id))
  }

  forget(): void {
    this.#jobs = undefined
  }
}
