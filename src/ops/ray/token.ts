/**
 * The token of a cluster: made on its head, carried to its workers, and read by Ray from a file of its own, so that the one
 * that the login has for another cluster (~/.ray/auth_token) stays as it is. It is in no script, plan or output.
 * https://docs.ray.io/en/latest/ray-security/token-auth.html
 */
import { shellQuote } from '../../base/shell-quote.ts'
import type { Step } from '../kernel/operation.ts'
import type { RayNode, RayWanted } from './wanted.ts'

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
    return [{ ...step, title: "make the cluster's token", run: { script: make }, check: { script: isThere } }]
  }
  const path = `~/${directory}`
  const files = { from: wanted.head.host, path, to: path }
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
