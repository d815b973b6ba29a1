/** Watches a cluster: one program on the head asks its dashboard and prints a line of JSON each round. */
import { type Clock, hasPassed } from '../../base/clock.ts'
import { Lines, parseJson, record, TOO_LONG, textOf } from '../../base/json-lines.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome, isSuccess } from '../run/outcome.ts'
import { GUARD, inside, OPENER, placeScript, tokenScript } from './place.ts'
import { type ClusterUsage, parseClusterUsage } from './usage.ts'
import { dashboardAddress, type RayWanted } from './wanted.ts'

/**
 * The program on the head that reports what a cluster does: a line of JSON each round, and empty lines between them as a sign of
 * life. A dead GCS or dashboard is reported within ROUND_S + 2 × LOOK_S, however long the interval is: the current round, the time
 * to the next check of the sockets, and that check.
 */

/** All that a round asks. */
export const ROUND_S = 5
/** The interval between checks of the listening sockets, and the limit for one check. */
export const LOOK_S = 2

/** Of a node's summary only what is read, as that of a large cluster has megabytes. */
export const WATCH_PROGRAM = `import json, socket, sys, time
${OPENER}
${GUARD}
guard()
dashboard, interval, rounds, gcs = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
raylet, until = "", 0
def left(): return max(0.2, until - time.monotonic())
def reach(what, place):
    if not place: return
    host, _, port = place.rpartition(":")
    try: socket.create_connection((host.strip("[]"), int(port)), min(${LOOK_S}, left())).close()
    except OSError as error: raise Exception("its " + what + " does not answer at " + place + ": " + str(error))
def get(path):
    with opener.open("http://" + dashboard + path, timeout=left()) as reply: return json.loads(reply.read(64000000))
def nodes():
    global raylet
    body, raylet = get("/nodes?view=summary"), ""
    for node in body["data"]["summary"]:
        own = node.get("raylet", {})
        # A dashboard tells what it knew for seconds after the raylet has gone.
        if own.get("isHeadNode") and own.get("state") == "ALIVE" and own.get("nodeManagerPort"): raylet = own.get("nodeManagerAddress", "") + ":" + str(own["nodeManagerPort"])
        for key in list(node):
            if key not in ("ip", "cpu", "mem", "gpus", "raylet"): del node[key]
        for key in ("coreWorkersStats", "resourcesTotal", "labels"): own.pop(key, None)
        node["gpus"] = [{"utilizationGpu": gpu.get("utilizationGpu")} for gpu in node.get("gpus") or []]
    return body
def actors():
    body = get("/api/v0/actors?limit=10000")
    for actor in body["data"]["result"]["result"]:
        for key in list(actor):
            if key != "state": del actor[key]
    return body
def look():
    global until
    until = time.monotonic() + ${ROUND_S}
    out = {}
    try:
        reach("GCS", gcs)
        found = nodes()
        reach("raylet", raylet)
        out["nodes"] = found
    except Exception as error: out["error"] = str(getattr(error, "reason", error))
    else:
        for name, ask in (("groups", lambda: get("/api/v0/placement_groups?detail=1&limit=1000")), ("actors", actors), ("status", lambda: get("/api/cluster_status?format=1"))):
            try: out[name] = ask()
            except Exception: pass
    return out
def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
def pause(is_well):
    global until
    end = time.monotonic() + interval
    while True:
        time.sleep(max(0, min(${LOOK_S}, end - time.monotonic())))
        if time.monotonic() >= end: return
        until = time.monotonic() + ${LOOK_S}
        try:
            for what, place in (("GCS", gcs), ("dashboard", dashboard), ("raylet", raylet)): reach(what, place)
        except Exception as error:
            say(json.dumps({"error": str(error)}) if is_well else "")
            is_well = False
        else: say("")
while True:
    out = look()
    say(json.dumps(out))
    rounds -= 1
    if rounds == 0: break
    pause("nodes" in out)
`

/** The program prints more often than this, so a silent head is as good as gone. */
const SILENT_MS = (ROUND_S + LOOK_S + 2) * 1000
/** The program prints a few lines a second at most. */
const MOST_LINES_PER_SECOND = 100

export type RayUsageOptions = {
  readonly hosts: OpsHosts
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly intervalMs: number
  /** 0: until the signal. */
  readonly rounds: number
  /** Undefined: the head did not answer this time; the reason is printable. */
  onUsage(usage: ClusterUsage | undefined, reason: string): void
  /** Called once each time the head falls silent. */
  onSilent(reason: string): void
}

/** Resolves with the reason (printable) when the head cannot be asked (any more), else undefined. */
export async function watchCluster(
  wanted: RayWanted,
  { hosts, clock, signal, intervalMs, rounds, onUsage, onSilent }: RayUsageOptions,
): Promise<string | undefined> {
  const { head, port } = wanted
  // After its GCS has gone, a dashboard repeats for a while what it knew.
  const gcs = head.ip === undefined ? '' : `${head.ip}:${port}`
  const script = `${placeScript(head.environment)}
[ -n "$py" ] || py=$(command -v python3) || { echo 'there is no python' >&2; exit 1; }
${tokenScript(wanted, head)}echo
exec "$py" -c ${shellQuote(WATCH_PROGRAM)} ${shellQuote(dashboardAddress(wanted))} ${intervalMs / 1000} ${rounds} ${shellQuote(gcs)}`
  let silence: Disposable | undefined
  const cut = new AbortController()
  let [secondBeganMs, lineCount] = [clock.now(), 0]
  const lines = new Lines(
    (line) => {
      if (hasPassed(secondBeganMs, 1000, clock.now())) [secondBeganMs, lineCount] = [clock.now(), 0]
      if (++lineCount > MOST_LINES_PER_SECOND) {
        lines.stop()
        return cut.abort()
      }
      silence?.[Symbol.dispose]()
      silence = clock.after(SILENT_MS, () => onSilent(`it has sent nothing for ${SILENT_MS / 1000} s`))
      if (line === '') return
      const answer = parseJson(line)
      onUsage(parseClusterUsage(answer), printable(textOf(record(answer)?.error)))
    },
    () => onUsage(undefined, TOO_LONG),
  )
  const result = await hosts.exec(head.host, inside(wanted, head, script, 'guarded'), {
    timeoutMs: Number.POSITIVE_INFINITY,
    signal: AbortSignal.any([signal, cut.signal]),
    onOutput: (stream, text) => {
      if (stream === 'stdout') lines.push(text)
    },
  })
  silence?.[Symbol.dispose]()
  if (cut.signal.aborted) return `it printed more than ${MOST_LINES_PER_SECOND} lines within a second, and was cut off`
  const { outcome } = result
  if (outcome.kind === 'cancelled' || isSuccess(outcome)) return undefined
  return printable(reasonOfResult(result, formatOutcome))
}
