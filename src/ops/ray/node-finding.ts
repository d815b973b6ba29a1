/** A finding about the host of a node. */
import type { Finding, Gravity } from '../kernel/finding.ts'
import type { RayNode } from './wanted.ts'

export function finding(
  { host }: RayNode,
  gravity: Gravity,
  id: string,
  cause: string,
  more: Pick<Finding, 'detail' | 'mend' | 'hint'> = {},
): Finding {
  return { host, gravity, id, cause, ...more }
}
