/**
 * Finds what is left of clusters that hosts.yaml no longer declares: units, tokens, logs, and working directories of interrupted
 * submissions. Files below /tmp/ray belong to Ray.
 */

import type { LeftKind } from '../../base/left.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { declaredWith, defineLeft, type LeftAnswer, type Leftover, leftFact, leftoversOf } from '../kernel/left.ts'
import { CTL } from '../kernel/services.ts'
import { clusterDirectory } from './place.ts'
import { LIST_RAY } from './processes.ts'
import { UNIT_REMOVE, unitName } from './unit.ts'
import { nodesOf, type RayWanted, wantedRay } from './wanted.ts'

/** `wanted`: of the cluster that hosts.yaml gives the host. */
function findScript(wanted: RayWanted | undefined): string {
  const [unit, directory] = wanted === undefined ? ['', ''] : [unitName(wanted), clusterDirectory(wanted)]
  return `${CTL}${LIST_RAY}
for each in "$units"/muster-ray-*.service; do
  [ -e "$each" ] || continue
  name=\${each##*/}
  if [ "$name" = ${shellQuote(unit)} ]; then left_found declared "$each"
  elif can_supervise && limited systemctl $manager is-active --quiet "$name"; then left_found unit "$each" "it runs; to end it: systemctl $manager stop $name"
  else left_found unit "$each"; fi
done
running=
for each in "$HOME"/.ray/muster/*; do
  [ -d "$each" ] && [ ! -L "$each" ] || continue
  [ -n "$running" ] || { running=no; [ -z "$(list_ray | head -n 1)" ] || running=yes; }
  if [ "$each" = "$HOME/"${shellQuote(directory)} ]; then left_found declared "$each"
  elif [ $running = yes ]; then left_found cluster "$each" 'Ray runs on the host'
  else left_found cluster "$each"; fi
done
for each in "\${TMPDIR:-/tmp}"/muster-job-????????; do [ ! -d "$each" ] || left_found submission "$each"; done`
}

const KINDS: Readonly<Record<string, LeftKind>> = {
  declared: { title: 'cluster' },
  unit: { title: 'unit of a node', remove: UNIT_REMOVE },
  cluster: {
    title: 'token and log of a cluster',
    remove: 'rm -rf "$p" && cd "$HOME" && rmdir -p .ray/muster 2> /dev/null; :',
  },
  submission: { title: 'files of a job on their way', isBrief: true },
}

export const left = defineLeft<{ found: LeftAnswer }>({
  name: 'ray',
  factsOf(declared, host, also) {
    const wanted = wantedRay(declared)
    const isMember = wanted !== undefined && nodesOf(wanted).some((node) => node.host === host)
    return { found: leftFact(findScript(isMember ? wanted : undefined), also) }
  },
  itemsOf: ({ found }): Leftover[] =>
    leftoversOf(found, KINDS, ({ kind }) => (kind === 'declared' ? declaredWith('ray') : undefined)),
})
