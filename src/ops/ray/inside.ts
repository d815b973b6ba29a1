/**
 * Runs scripts where Ray is: on the host, or inside the container of a Docker environment, whose processes, shared memory and files
 * are those of the node.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { DOCK } from '../env/docker-scripts.ts'
import type { Fact } from '../kernel/fact.ts'
import { limitedFunctions } from '../kernel/probe-script.ts'
import { tokenFile } from './token.ts'
import type { RayNode, RayWanted } from './wanted.ts'

type Stdin = 'none' | 'whole' | 'guarded'

const isRunning = (name: string): string =>
  `[ "$(dock container inspect --format '{{.State.Running}}' ${shellQuote(name)} 2> /dev/null)" = true ]`

/** The body of a fact, for a shell of its own. */
function asProgram(script: string): string {
  return `exec 2> /dev/null
LC_ALL=C; export LC_ALL
${limitedFunctions()}
fact() {
${script}
}
fact`
}

/**
 * A fact read where Ray is. `otherwise` is the script if the container does not run (yet); by default the fact of the host.
 */
export function factInside<T>(
  wanted: RayWanted,
  node: RayNode,
  fact: Fact<T>,
  otherwise: string = fact.script,
): Fact<T> {
  const { environment } = node
  if (environment?.kind !== 'docker') return fact
  return {
    ...fact,
    script: `${DOCK}if ${isRunning(environment.name)}; then
  ${execIn(environment.name, wanted, asProgram(fact.script), 'none')}
else
${otherwise}
fi`,
  }
}

/**
 * The script for where Ray is. `guarded` stdin stays open while Muster waits, and the programs end with it, because Docker leaves
 * them running when its client is gone. `absent` runs before the error if the container is not running.
 */
export function inside(
  wanted: RayWanted,
  node: RayNode,
  script: string,
  stdin: Stdin = 'none',
  absent: (name: string) => string = () => ':',
): string {
  const { environment } = node
  if (environment?.kind !== 'docker') return script
  const { name } = environment
  return `${DOCK}${isRunning(name)} || {
  ${absent(name)}
  echo ${shellQuote(`the container ${name} is not running`)} >&2; exit 1; }
${execIn(name, wanted, script, stdin)}`
}

function execIn(name: string, wanted: RayWanted, script: string, stdin: Stdin): string {
  // The token is in a file of the host; in the container it is in no file.
  const token = wanted.hasToken ? `cat ${tokenFile(wanted)} && echo && ` : ''
  const take = wanted.hasToken
    ? 'read -r RAY_AUTH_TOKEN; RAY_AUTH_MODE=token; export RAY_AUTH_TOKEN RAY_AUTH_MODE\n'
    : ''
  const guard = stdin === 'guarded' ? 'MUSTER_GUARDED=1; export MUSTER_GUARDED\n' : ''
  const rest = { none: ':', whole: 'cat', guarded: '{ cat; while echo; do sleep 1; done; }' }[stdin]
  return `{ ${token}${rest}; } 2> /dev/null | dock exec --interactive ${shellQuote(name)} sh -c ${shellQuote(`${take}${guard}${script}`)}`
}

/** Lines of Python: `guard()` ends the program when its stdin ends, where it is guarded. */
export const GUARD = `def guard():
    import os, threading
    if not os.environ.pop("MUSTER_GUARDED", ""): return
    def wait():
        while os.read(0, 65536): pass
        os._exit(1)
    threading.Thread(target=wait, daemon=True).start()`
