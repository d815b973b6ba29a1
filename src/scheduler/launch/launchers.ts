/** A new launcher is a file and a line here. */
import { ditask } from './ditask.ts'
import { horovod } from './horovod.ts'
import type { Launcher } from './launcher.ts'
import { mpi } from './mpi.ts'
import { tf } from './tf.ts'
import { torchrun } from './torchrun.ts'
import { vllm } from './vllm.ts'

export const LAUNCHERS: readonly Launcher[] = [mpi, horovod, torchrun, tf, vllm, ditask]
