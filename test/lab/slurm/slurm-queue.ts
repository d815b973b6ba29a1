/** A Slurm of the lab and a queue that hands jobs to it, for tests with real sbatch and srun. */
import { appendFileSync } from 'node:fs'
import type { Lab, LabOptions } from '../cluster/lab.ts'
import { SLURM_SECTION, type SlurmLab, type SlurmOptions, slurmLab } from '../cluster/slurm-lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

export type SlurmQueue = {
  readonly lab: Lab
  readonly slurm: SlurmLab
  readonly queue: LabQueue
  /** hosts.yaml. */
  readonly file: string
  /** Of the scheduler and of all jobs in Slurm. */
  stop(): Promise<void>
}

/** `section`: `slurm` in hosts.yaml. */
export async function slurmQueue(
  options: SlurmOptions & { readonly section?: string } = {},
  labOptions: LabOptions = {},
): Promise<SlurmQueue> {
  const { section = SLURM_SECTION, ...slurmOptions } = options
  const { lab, slurm } = await slurmLab(slurmOptions, labOptions)
  const file = hostsFileOf(lab, 'slurm')
  appendFileSync(file, section)
  const queue = labQueue(lab, file)
  return {
    ...{ lab, slurm, queue, file },
    async stop() {
      await queue.stop()
      await slurm.run('scancel --quiet -u root')
    },
  }
}
