/** Slurm: a controller and its nodes, as hosts.yaml declares them; or what a cluster of somebody else says about itself. */
import { defineArea } from '../kernel/area.ts'
import { type Fact, type KnownFacts, knownValue } from '../kernel/fact.ts'
import { defineLeft, leftOfOperations } from '../kernel/left.ts'
import { DAEMON_LIST } from './daemons.ts'
import { AREA, type RemovalFacts, removalFacts, type SlurmFacts, slurmFacts } from './facts.ts'
import { planSlurm, removalOf } from './plan.ts'
import { verifySlurm } from './verify.ts'
import { hostOf, type SlurmWanted, UNSET_VARIABLES, wantedSlurm } from './wanted.ts'

const MOST_JOBS = 1000

/** Ids of the jobs of the slurmctld on this host; none where it does not run. */
const jobsFact: Fact<readonly string[]> = {
  script: `${DAEMON_LIST}
daemon_list | grep -q '^slurmctld ' || { echo end; return; }
${UNSET_VARIABLES}
said=$(limited squeue -h -a -t PD,CF,R,S,CG -o %A) || return
printf '%s\\n' "$said" | head -n ${MOST_JOBS}
echo end`,
  parse(text) {
    const lines = text.split('\n')
    return lines.at(-1) === 'end' ? lines.filter((line) => /^\d{1,12}$/.test(line)) : undefined
  },
}

type LeftFacts = RemovalFacts & { readonly jobs: readonly string[] }

function userOf({ daemons, jobs }: KnownFacts<LeftFacts>): string | undefined {
  const step = (knownValue(daemons)?.processes ?? []).find(({ daemon }) => daemon === 'slurmstepd')
  if (step !== undefined) return `a job of Slurm runs there (process ${step.pid})`
  const ids = knownValue(jobs)
  if (ids === undefined) return 'slurmctld runs there, and does not say which jobs it has'
  const [first, ...others] = ids
  if (first === undefined) return undefined
  return others.length === 0 ? `its slurmctld has job ${first}` : `its slurmctld has ${ids.length} jobs: ${first} …`
}

export const left = defineLeft<LeftFacts>({
  name: AREA,
  factsOf: () => ({ ...removalFacts({ isController: false, isNode: false }), jobs: jobsFact }),
  itemsOf(facts, declared, host) {
    const wanted = wantedSlurm(declared)
    const isDeclared = wanted?.spec.cluster !== undefined && hostOf(wanted, host) !== undefined
    return leftOfOperations(removalOf(host, facts), isDeclared ? AREA : undefined, userOf(facts))
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
