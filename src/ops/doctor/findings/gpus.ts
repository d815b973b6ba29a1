/** GPUs: a driver that fails, and more or fewer of them than hosts.yaml declares. */
import { counted } from '../../../base/counted.ts'
import { type Complaint, complaint, onHost } from '../../kernel/finding.ts'
import type { MachineFacts } from '../fact-script.ts'

/** `declared`: what jobs may use; undefined: the host declares no resources. */
export function gpuComplaints({ gpus }: MachineFacts, declared: number | undefined): Complaint[] {
  if (gpus === undefined) return []
  const { count, failure } = gpus
  if (failure !== undefined) {
    const hint = /version mismatch/i.test(failure)
      ? 'The driver was updated while it was loaded: reboot the host, or unload the kernel modules of nvidia and load them again.'
      : undefined
    const more = hint === undefined ? { fix: onHost('nvidia-smi') } : { hint }
    return [complaint('risk', 'gpus-fail', 'nvidia-smi fails, so jobs cannot use GPUs', { detail: failure, ...more })]
  }
  if (declared === undefined || declared === count) return []
  const cause = `hosts.yaml declares ${counted(declared, 'GPU')}, and it has ${count === 0 ? 'none' : count}`
  if (declared > count) {
    const hint = `Jobs get GPUs that are not there: look at nvidia-smi -L, or set resources: { gpu: ${count} } in hosts.yaml.`
    return [complaint('risk', 'gpus-missing', cause, { hint })]
  }
  const hint = `Jobs do not use the others. To change that, set resources: { gpu: ${count} } in hosts.yaml.`
  return [complaint('note', 'gpus-undeclared', cause, { hint })]
}
