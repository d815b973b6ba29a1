import type { Section } from '../../inventory/hosts-yaml-schema.ts'
import type { AreaMaker } from './area.ts'
import type { LeftRoom } from './left.ts'

/** An entry of the list of areas (src/cli/bring-up/areas.ts): what the command line and hosts.yaml need before the area is loaded. */
export type AreaEntry = {
  readonly name: string
  /** Of `muster NAME`, and of its verbs. `check` is `status` that also writes test files, or only reads more; `sync` is another word for `up`. */
  readonly summary: string
  readonly verbs: Readonly<Record<'status' | 'up' | 'down', string> & { check?: string; sync?: string }>
  /** Its `check` writes no test files. */
  readonly isCheckReadOnly?: boolean
  section(): Promise<{ readonly section: Section }>
  /** `left`: finds for `muster left` what it left behind. */
  load(): Promise<{ readonly area: AreaMaker; readonly left?: LeftRoom }>
}
