/**
 * Runs scripts where Ray is: on the host itself, or inside the container of a Docker environment. A container's own processes,
 * shared memory and files are what its node has; what is asked of it is asked inside.
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
 * A fact of the place where Ray is; `otherwise` is the script for a host whose container does not run (yet): the fact of the host
 * itself, unless given.
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
 * The script for the place where Ray is. It has no stdin unless `stdin` says so; where that is guarded it goes on for as long as
 * somebody waits for it, and its programs end with it: Docker leaves what it runs behind when whoever asked for it is gone.
 * `absent` makes what comes before the error where its container is not running.
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
  // The token is of the host; inside it is in no file.
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
