/** Queue policies by name. */
import { ConservativeBackfill } from './conservative.ts'
import { createEasy, fcfs, shortestFirst } from './easy.ts'
import type { QueuePolicy } from './job.ts'
import { oldestReserved } from './oldest-reserved.ts'

export const QUEUE_POLICIES = {
  'oldest-reserved': () => oldestReserved,
  conservative: () => new ConservativeBackfill(),
  easy: () => createEasy(false),
  'easy-sjf': () => createEasy(true),
  sjf: () => shortestFirst,
  fcfs: () => fcfs,
} satisfies Record<string, () => QueuePolicy>

export type QueuePolicyName = keyof typeof QUEUE_POLICIES

export const DEFAULT_QUEUE_POLICY: QueuePolicyName = 'oldest-reserved'
