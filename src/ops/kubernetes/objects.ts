/** What is read of jobs and pods in several places. Pure. */
import { type JsonRecord, list, numberOf, record, textOf } from '../../base/json-lines.ts'
import { BARRED_LABEL } from './manifest.ts'

export const metadataOf = (object: JsonRecord): JsonRecord => record(object.metadata) ?? {}
export const labelsIn = (object: JsonRecord): JsonRecord => record(metadataOf(object).labels) ?? {}
export const isDeleting = (object: JsonRecord): boolean => metadataOf(object).deletionTimestamp !== undefined

export const conditionOf = (object: JsonRecord, type: string): JsonRecord | undefined =>
  list(record(object.status)?.conditions).find((condition) => condition.type === type)

export const isTrue = (object: JsonRecord, type: string): boolean => conditionOf(object, type)?.status === 'True'

/** What controls a pod; empty: nothing. */
export const ownerOf = (pod: JsonRecord): JsonRecord =>
  list(metadataOf(pod).ownerReferences).find(({ controller }) => controller === true) ?? {}
export const phaseOf = (pod: JsonRecord): string => textOf(record(pod.status)?.phase)
export const nodeOfPod = (pod: JsonRecord): string => textOf(record(pod.spec)?.nodeName)
export const hasEnded = (pod: JsonRecord): boolean => ['Succeeded', 'Failed'].includes(phaseOf(pod))

export const isOver = (job: JsonRecord): boolean => isTrue(job, 'Complete') || isTrue(job, 'Failed')
export const isSuspended = (job: JsonRecord): boolean => record(job.spec)?.suspend === true
export const isBarred = (job: JsonRecord): boolean => labelsIn(job)[BARRED_LABEL] !== undefined
export const parallelismOf = (job: JsonRecord): number => numberOf(record(job.spec)?.parallelism) ?? 0
