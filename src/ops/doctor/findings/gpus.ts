/** GPUs: a driver that fails, and more or fewer of them than hosts.yaml declares. */
import { counted } from '../../../base/counted.ts'
import { type Complaint, complaint, onHost } from '../../kernel/finding.ts'
import type { MachineFacts } from '../fact-script.ts'
import type { Gpus } from '../facts/gpus.ts'

/** `declared`: what jobs may use; undefined: the host declares no resources. */
export function gpuComplaints({ gpus }: MachineFacts, declared: number | undefined): Complaint[] {
  const { count, failure } = gpus ?? {}
  if (failure !== undefined) return [failing(failure, declared)]
  if (count === undefined || declared === undefined || declared === count) return []
  const cause = `hosts.yaml declares ${declared === 0 ? 'no GPU' : counted(declared, 'GPU')}, and it has ${count === 0 ? 'none' : count}`
  if (declared > count) {
    const hint = `Jobs may get GPUs that do not exist, or wait for them. Check nvidia-smi -L, or set resources: { gpu: ${count} } in hosts.yaml.`
    return [complaint('risk', 'gpus-missing', cause, { hint })]
  }
  const hint = `Jobs do not use ${declared === 0 ? 'them' : 'the others'}. To change that, set resources: { gpu: ${count} } in hosts.yaml.`
  return [complaint('note', 'gpus-undeclared', cause, { hint })]
}

/** A host whose declared resources have no GPU gets no job that needs one. */
function failing({ status, line }: NonNullable<Gpus['failure']>, declared: number | undefined): Complaint {
  const remedy = /version mismatch/i.test(line)
    ? {
        hint: 'The driver was updated while it was loaded: reboot the host, or unload the kernel modules of nvidia and load them again.',
      }
    : { fix: onHost('nvidia-smi') }
  const detail = line === '' ? `exit code ${status}` : line
  const gravity = declared === 0 ? 'note' : 'risk'
  return complaint(gravity, 'gpus-fail', 'nvidia-smi fails, so jobs may not be able to use GPUs', { detail, ...remedy })
}
