/**
 * Checks what an environment needs beyond its plan: packages from an index or from wheels, a directory that this login may write
 * to, and disk space. It reads, asks the index, and changes nothing.
 */

import { formatBytes } from '../../base/format-bytes.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Preflight } from '../kernel/area.ts'
import { pathWord } from '../kernel/files.ts'
import type { Complaint } from '../kernel/finding.ts'
import { type Operation, operationId, type Verdict } from '../kernel/operation.ts'
import type { EnvironmentSpec } from './section.ts'
import { AREA } from './wanted.ts'

/** A few packages fill less space than this. */
const LITTLE_BYTES = 2 ** 30

/** Any answer will do, also a request for a password or a certificate that only pip trusts. */
const ASK_PROGRAM = `import ssl, sys, urllib.error, urllib.request
try: urllib.request.urlopen(sys.argv[1], timeout=5).close()
except urllib.error.HTTPError: pass
except urllib.error.URLError as error:
    if not isinstance(error.reason, ssl.SSLError): sys.exit(1)
except OSError: sys.exit(1)
`

/** Findings about another host, which may be reached later. */
const OF_OTHERS = ['needs-other', 'not-reached']

/** For the hosts where this plan makes an environment, or would if other hosts answered. */
export function envPreflights(spec: EnvironmentSpec, operations: readonly Operation[]): Preflight[] {
  const open = operations.filter(
    ({ area, verdict }) => area === AREA && (verdict.kind === 'steps' || isOfOthers(verdict)),
  )
  const path = spec.kind === 'venv' ? spec.path : spec.kind === 'conda' ? spec.prefix : undefined
  return [...new Set(open.map(({ host }) => host))].flatMap((host) => {
    const wheels = operationId(AREA, 'wheels', host)
    const own = open.filter((each) => each.host === host)
    const parts = [
      ...(spec.kind === 'venv' && own.some(({ id }) => id === wheels) ? [packages(spec)] : []),
      ...(path !== undefined && own.some(({ id }) => id !== wheels) ? [place(path)] : []),
    ]
    if (parts.length === 0) return []
    const script = parts.map((part) => part.script).join('\n')
    const findingsOf: Preflight['findingsOf'] = (said) =>
      parts.flatMap(({ complain }) => complain(said)).map((each) => ({ host, ...each }))
    return [{ host, script, findingsOf }]
  })
}

function isOfOthers(verdict: Verdict): boolean {
  return verdict.kind === 'blocked' && verdict.findings.every(({ id }) => OF_OTHERS.includes(id))
}

type Part = { readonly script: string; complain(said: string): Complaint[] }

function packages({ python, wheels }: Extract<EnvironmentSpec, { kind: 'venv' }>): Part {
  const count = wheels === undefined ? 'echo 0' : `ls ${pathWord(wheels)} 2> /dev/null | grep -c '\\.whl$'`
  return {
    script: `python=${shellQuote(python)}
echo "wheels=$(${count})"
index=\${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2> /dev/null || echo https://pypi.org/simple)}
index=$(printf %s "$index" | sed 's#//[^/@]*@#//#')
"$python" -I -c ${shellQuote(ASK_PROGRAM)} "$index/pip/" > /dev/null 2>&1 || echo "silent=$index"`,
    complain(said) {
      const index = /^silent=(.+)$/m.exec(said)?.[1]
      if (index === undefined || /^wheels=[1-9]/m.test(said)) return []
      const without = wheels === undefined ? 'hosts.yaml names no wheels' : `there are no wheels in ${wheels}`
      const hint =
        wheels === undefined
          ? 'Put the wheels into a directory of this host and name it in hosts.yaml (wheels: DIRECTORY, below environment: venv:).'
          : `Put the wheels into ${wheels} on this host.`
      const cause = `no packages for the environment: the package index does not answer, and ${without}`
      return [{ gravity: 'blocker', id: 'no-packages', cause, detail: index, hint }]
    },
  }
}

function place(path: string): Part {
  return {
    // The nearest existing directory above the environment; nothing is asked if the environment exists.
    script: `p=${pathWord(path)}
if [ -z "$(ls -A "$p" 2> /dev/null)" ]; then
while [ -n "$p" ] && [ ! -e "$p" ]; do p=\${p%/*}; done
p=\${p:-/}
[ -d "$p" ] && [ -w "$p" ] && [ -x "$p" ] || echo "locked=$p"
echo "room=$(df -Pk "$p" 2> /dev/null | sed -n '2s/.* \\([0-9][0-9]*\\)  *[0-9]*% .*/\\1/p')"
fi`,
    complain(said) {
      const locked = /^locked=(.+)$/m.exec(said)?.[1]
      if (locked !== undefined) {
        const cause = `${path} cannot be created: no permission to write there`
        const hint = 'Choose another path in hosts.yaml, or give this login permission to write there.'
        return [{ gravity: 'blocker', id: 'no-rights', cause, detail: locked, hint }]
      }
      const room = /^room=(\d{1,15})$/m.exec(said)?.[1]
      if (room === undefined || Number(room) * 1024 >= LITTLE_BYTES) return []
      const cause = `little space for ${path}`
      return [{ gravity: 'risk', id: 'little-room', cause, detail: `${formatBytes(Number(room) * 1024)} available` }]
    },
  }
}
