/** What a cluster does, again and again: one program on the head asks its dashboard and prints a line of JSON a round. */
import { printable } from '../../base/printable.ts'
import { quote } from '../kernel/finding.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome } from '../run/outcome.ts'
import { GUARD, inside } from './inside.ts'
import { parseJson, record, textOf } from './json.ts'
import { Lines } from './lines.ts'
import { placeScript } from './place.ts'
import { OPENER, tokenScript } from './token.ts'
import { type ClusterUsage, parseClusterUsage } from './usage.ts'
import { dashboardAddress, type RayWanted } from './wanted.ts'

/** Of a node's summary only what is read, as that of a large cluster has megabytes. */
const PROGRAM = `import json, socket, sys, time
${OPENER}
${GUARD}
guard()
base, interval, rounds, gcs = "http://" + sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
def reach():
    try: socket.create_connection((gcs.rpartition(":")[0], int(gcs.rpartition(":")[2])), 3).close()
    except OSError as error: raise Exception("its GCS does not answer at " + gcs + ": " + str(error))
def get(path):
    with opener.open(base + path, timeout=5) as reply: return json.loads(reply.read(64000000))
def nodes():
    body = get("/nodes?view=summary")
    for node in body["data"]["summary"]:
        for key in list(node):
            if key not in ("ip", "cpu", "mem", "gpus", "raylet"): del node[key]
        for key in ("coreWorkersStats", "resourcesTotal", "labels"): node.get("raylet", {}).pop(key, None)
        node["gpus"] = [{"utilizationGpu": gpu.get("utilizationGpu")} for gpu in node.get("gpus") or []]
    return body
def actors():
    body = get("/api/v0/actors?limit=10000")
    for actor in body["data"]["result"]["result"]:
        for key in list(actor):
            if key != "state": del actor[key]
    return body
while True:
    out = {}
    try:
        if gcs: reach()
        out["nodes"] = nodes()
    except Exception as error: out["error"] = str(getattr(error, "reason", error))
    else:
        for name, ask in (("groups", lambda: get("/api/v0/placement_groups?detail=1&limit=1000")), ("actors", actors), ("status", lambda: get("/api/cluster_status?format=1"))):
            try: out[name] = ask()
            except Exception: pass
    sys.stdout.write(json.dumps(out) + "\\n")
    sys.stdout.flush()
    rounds -= 1
    if rounds == 0: break
    time.sleep(interval)`

export type WatchOptions = {
  readonly hosts: OpsHosts
  readonly signal: AbortSignal
  readonly intervalMs: number
  /** 0: until the signal. */
  readonly rounds: number
  /** Undefined: the dashboard did not answer this time; the reason is printable. */
  onUsage(usage: ClusterUsage | undefined, reason: string): void
}

/** Resolves with the reason (printable) when the head cannot be asked (any more), else undefined. */
export async function watchCluster(
  wanted: RayWanted,
  { hosts, signal, intervalMs, rounds, onUsage }: WatchOptions,
): Promise<string | undefined> {
  const { head, port } = wanted
  // A dashboard goes on telling what it knew for a while after its GCS has gone.
  const gcs = head.ip === undefined ? '' : `${head.ip}:${port}`
  const script = `${placeScript(head.environment)}
[ -n "$py" ] || py=$(command -v python3) || { echo 'there is no python' >&2; exit 1; }
${tokenScript(wanted, head)}exec "$py" -c ${quote(PROGRAM)} ${quote(dashboardAddress(wanted))} ${intervalMs / 1000} ${rounds} ${quote(gcs)}`
  const lines = new Lines((line) => {
    const answer = parseJson(line)
    onUsage(parseClusterUsage(answer), printable(textOf(record(answer)?.error)))
  })
  const result = await hosts.exec(head.host, inside(wanted, head, script, 'guarded'), {
    timeoutMs: Number.POSITIVE_INFINITY,
    signal,
    onOutput: (stream, text) => {
      if (stream === 'stdout') lines.push(text)
    },
  })
  const { outcome } = result
  if (outcome.kind === 'cancelled' || (outcome.kind === 'exit' && outcome.code === 0)) return undefined
  return printable(reasonOfResult(result, formatOutcome))
}
