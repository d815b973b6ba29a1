/** All jobs that are on hosts, cached until another program writes. */
import { isActive, type Job } from './job.ts'

export class KeptActive {
  #jobs: Map<number, Job> | undefined
  #list: readonly Job[] | undefined
  #version = -1

  /** By number. `version` changes with each write of others. */
  read(version: number, load: (known: ReadonlyMap<number, Job>) => readonly Job[]): readonly Job[] {
    const known = this.#jobs ?? new Map<number, Job>()
    if (this.#version !== version) this.forget()
    this.#jobs ??= new Map(load(known).map((job) => [job.id, job]))
    this.#version = version
    this.#list ??= [...this.#jobs.values()].toSorted((one, other) => one.id - other.id)
    return this.#list
  }

  find(version: number, id: number): Job | undefined {
    return this.#version === version ? this.#jobs?.get(id) : undefined
  }

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
