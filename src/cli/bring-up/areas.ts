/** The areas of bring-up in the order in which they are brought up; `down` goes the other way. */

import { envArea } from '../../ops/env/env.ts'
import type { AreaMaker } from '../../ops/kernel/area.ts'
import { nfsArea } from '../../ops/nfs/nfs.ts'
import { rayArea } from '../../ops/ray/ray.ts'
import { trustArea } from '../../ops/trust/trust.ts'

export const AREAS: readonly AreaMaker[] = [trustArea, nfsArea, envArea, rayArea]
