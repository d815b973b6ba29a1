/** A cluster of Ray as hosts.yaml declares the least of it. */
import type { RayWanted } from '../../../../src/ops/ray/wanted.ts'

export function rayWanted(declared: Pick<RayWanted, 'head'> & Partial<RayWanted>): RayWanted {
  return {
    workers: [],
    port: 6333,
    dashboardHost: '127.0.0.1',
    dashboardPort: 8265,
    hasToken: false,
    ports: {},
    tempDirectory: '/tmp/ray',
    variables: {},
    isSupervised: false,
    ...declared,
  }
}
