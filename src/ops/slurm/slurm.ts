/** Slurm: a controller and its nodes, as hosts.yaml declares them; or what a cluster of somebody else says about itself. */
import { defineArea } from '../kernel/area.ts'
import { knownValue } from '../kernel/fact.ts'
import { defineLeft, leftOfOperations } from '../kernel/left.ts'
import { AREA, type RemovalFacts, removalFacts, type SlurmFacts, slurmFacts } from './facts.ts'
import { planSlurm, removalOf } from './plan.ts'
import { verifySlurm } from './verify.ts'
import { hostOf, type SlurmWanted, wantedSlurm } from './wanted.ts'

export const left = defineLeft<RemovalFacts>({
  name: AREA,
  factsOf: () => removalFacts({ isController: false, isNode: false }),
  itemsOf(facts, declared, host) {
    const wanted = wantedSlurm(declared)
    const isDeclared = wanted?.spec.cluster !== undefined && hostOf(wanted, host) !== undefined
    const running = (knownValue(facts.daemons)?.processes ?? []).find(({ daemon }) => daemon === 'slurmstepd')
    const usedBy = running === undefined ? undefined : `a job of Slurm runs there (process ${running.pid})`
    return leftOfOperations(removalOf(host, facts), isDeclared ? AREA : undefined, usedBy)
  },
})

export const area = defineArea<SlurmWanted, SlurmFacts>({
  name: AREA,
  wantedOf: wantedSlurm,
  hostsOf: ({ hosts }) => hosts.map(({ host }) => host),
  factsOf: slurmFacts,
  plan: planSlurm,
  verify: verifySlurm,
})
