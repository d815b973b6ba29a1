/**
 * Where Ray is on a host, and how scripts run there: in an environment or inside its container, whose processes, shared memory and
 * files are those of the node, with the token of the cluster.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { DOCK } from '../env/docker.ts'
import { findPrefix, prefixOf } from '../env/facts.ts'
import type { EnvironmentSpec } from '../env/section.ts'
import { type Fact, limitedFunctions } from '../kernel/fact.ts'
import type { Step } from '../kernel/operation.ts'
import type { RayNode, RayWanted } from './wanted.ts'

export function placeScript(environment: EnvironmentSpec | undefined): string {
  const isPrefix = environment !== undefined && environment.kind !== 'docker'
  const find = isPrefix ? findPrefix(prefixOf(environment)) : `p=$(command -v ray); p=\${p%/bin/ray}`
  return `${find}
ray= py=
if [ -n "$p" ] && [ -x "$p/bin/python" ]; then
  py=$p/bin/python
  [ ! -x "$p/bin/ray" ] || ray=$p/bin/ray
fi`
}

/** In words, for people. */
export function placeName(environment: EnvironmentSpec | undefined): string {
  if (environment === undefined) return 'the PATH of the login'
  if (environment.kind === 'venv') return environment.path
  if (environment.kind === 'docker') return `the container ${environment.name}`
  return `the conda environment ${environment.prefix ?? environment.name}`
}

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
  stdin: keyof typeof STDINS = 'none',
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

const STDINS = { none: ':', whole: 'cat', guarded: '{ cat; while echo; do sleep 1; done; }' } as const

function execIn(name: string, wanted: RayWanted, script: string, stdin: keyof typeof STDINS): string {
  // The token is in a file of the host; in the container it is in no file.
  const token = wanted.hasToken ? `cat ${tokenFile(wanted)} && echo && ` : ''
  const take = wanted.hasToken
    ? 'read -r RAY_AUTH_TOKEN; RAY_AUTH_MODE=token; export RAY_AUTH_TOKEN RAY_AUTH_MODE\n'
    : ''
  const guard = stdin === 'guarded' ? 'MUSTER_GUARDED=1; export MUSTER_GUARDED\n' : ''
  return `{ ${token}${STDINS[stdin]}; } 2> /dev/null | dock exec --interactive ${shellQuote(name)} sh -c ${shellQuote(`${take}${guard}${script}`)}`
}

/** Lines of Python: `guard()` ends the program when its stdin ends, where it is guarded. */
export const GUARD = `def guard():
    import os, threading
    if not os.environ.pop("MUSTER_GUARDED", ""): return
    def wait():
        while os.read(0, 65536): pass
        os._exit(1)
    threading.Thread(target=wait, daemon=True).start()`

/**
 * The token of a cluster: made on its head, carried to its workers, and read by Ray from a file of its own, so that the one
 * that the login has for another cluster (~/.ray/auth_token) stays as it is. It is in no script, plan or output.
 * https://docs.ray.io/en/latest/ray-security/token-auth.html
 */

const FILE = 'auth_token'

/** A directory for each cluster, the same on all its hosts. */
export function clusterDirectory({ head, port }: RayWanted): string {
  return `.ray/muster/${head.host}-${port}`
}

/** As a word of the shell. */
export function tokenFile(wanted: RayWanted): string {
  return `$HOME/${shellQuote(`${clusterDirectory(wanted)}/${FILE}`)}`
}

/** Shell words after which programs of Ray use the token; none where none is declared, and a container is given it otherwise. */
export function tokenScript(wanted: RayWanted, { environment }: RayNode): string {
  if (!wanted.hasToken || environment?.kind === 'docker') return ''
  return `RAY_AUTH_MODE=token; RAY_AUTH_TOKEN_PATH=${tokenFile(wanted)}; export RAY_AUTH_MODE RAY_AUTH_TOKEN_PATH\n`
}

/** What comes before a node starts. */
export function tokenSteps(wanted: RayWanted, node: RayNode, operation: string): readonly Step[] {
  if (!wanted.hasToken) return []
  const directory = clusterDirectory(wanted)
  const file = tokenFile(wanted)
  const step = { id: `${operation}/token`, changes: [`+ ~/${directory}/${FILE}`] }
  const isThere = `[ -s ${file} ]`
  if (node.isHead) {
    const make = `umask 077
mkdir -p "$HOME/"${shellQuote(directory)} || exit 1
od -A n -t x1 -N 32 /dev/urandom | tr -d ' \\n' > ${file}.new && mv -f ${file}.new ${file}`
    return [
      {
        ...step,
        title: "make the cluster's token",
        run: { script: make },
        check: { script: isThere, lack: `~/${directory}/${FILE} is empty or not there` },
      },
    ]
  }
  const path = `~/${directory}`
  const files = { from: wanted.head.host, path, kind: 'directory', to: path } as const
  return [{ ...step, title: "bring the cluster's token", run: { script: `chmod 600 ${file} && ${isThere}`, files } }]
}

/**
 * Lines of Python that set `token` as Ray itself would take it; empty where there is none. A head takes the login's by itself
 * where hosts.yaml says nothing (from Ray 2.60 on).
 */
export const TOKEN = `import os
token = os.environ.get("RAY_AUTH_TOKEN", "")
if not token:
    try:
        with open(os.environ.get("RAY_AUTH_TOKEN_PATH") or os.path.expanduser("~/.ray/auth_token")) as file: token = file.read(10000).strip()
    except Exception: pass
if token: os.environ.setdefault("RAY_AUTH_MODE", "token")`

/** Lines of Python that make `opener`, which has the token and takes no proxy. */
export const OPENER = `${TOKEN}
from urllib.request import build_opener, ProxyHandler
opener = build_opener(ProxyHandler({}))
if token: opener.addheaders.append(("Authorization", "Bearer " + token))`

/** Sets $py to the Python of the environment, with the cluster's token; without Ray there it ends. */
export function pythonScript(wanted: RayWanted, node: RayNode): string {
  return `${placeScript(node.environment)}
[ -n "$py" ] || { echo ${shellQuote(`there is no ray in ${placeName(node.environment)}`)} >&2; exit 1; }
${tokenScript(wanted, node)}`
}
