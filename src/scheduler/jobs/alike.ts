/** Which jobs are placed alike: what the plan has refused to one of them it refuses to the others, too. */
import { createHash } from 'node:crypto'
import type { JobSpec } from './job.ts'

const BYTES = 6

/** The same number for specifications that differ in nothing that the plan looks at; stored with each job. */
export function alikeOf({ engine, bundles, request, strategy, maxBundlesPerHost, estimateS, limitS }: JobSpec): number {
  const text = JSON.stringify([engine, bundles, request, strategy, maxBundlesPerHost, estimateS, limitS])
  return createHash('sha256').update(text).digest().readUIntBE(0, BYTES)
}
