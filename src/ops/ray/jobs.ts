/**
 * Jobs of a Ray cluster, through Ray's own client on its head: submitted, listed, followed, stopped. A job belongs to the
 * cluster and continues when Muster ends.
 */

import { defined } from '../../base/defined.ts'
import { type JsonRecord, Lines, numberOf, parseJson, record, TOO_LONG, textOf } from '../../base/json-lines.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome, isSuccess } from '../run/outcome.ts'
import { GUARD, inside, OPENER, pythonScript } from './place.ts'
import { dashboardAddress, type RayWanted } from './wanted.ts'

export type RayJob = {
  readonly id: string
  /** PENDING, RUNNING, STOPPED, SUCCEEDED or FAILED. */
  readonly status: string
  /** The command line. */
  readonly entrypoint: string
  readonly message: string
  /** Milliseconds since the epoch by the head's clock. */
  readonly startMs?: number
  readonly endMs?: number
  /** Of the command, once it has ended by itself. */
  readonly exitCode?: number
}

export type RayJobSpec = {
  /** For a shell. */
  readonly entrypoint: string
  readonly id?: string
  readonly environment: Readonly<Record<string, string>>
  /** What the command itself reserves; its tasks reserve their own. */
  readonly cpus?: number
  readonly gpus?: number
  readonly resources?: Readonly<Record<string, number>>
  /** A tar archive of the working directory. */
  readonly archive?: Uint8Array
}

export type RayJobOrder =
  | { readonly do: 'submit'; readonly job: RayJobSpec; readonly follow: boolean }
  | { readonly do: 'logs'; readonly id: string; readonly follow: boolean }
  | { readonly do: 'stop'; readonly id: string }
  | { readonly do: 'list' }

/** Texts are not printable yet. */
export type RayJobEvent =
  | { readonly type: 'submitted'; readonly id: string }
  | { readonly type: 'log'; readonly text: string }
  | { readonly type: 'job'; readonly job: RayJob }
  /** `isPending`: Ray stops it once it has placed it. */
  | { readonly type: 'stopped'; readonly isStopped: boolean; readonly isPending?: boolean }

export type RayJobOptions = {
  readonly hosts: OpsHosts
  readonly signal: AbortSignal
  readonly timeoutMs: number
  onEvent(event: RayJobEvent): void
}

/** The result of a request: done, refused by Ray, or the head could not be asked. */
export type JobEnd =
  | { readonly kind: 'done' }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'away' | 'cancelled'; readonly reason: string }

/** Of one answer. */
const MOST_JOBS = 100_000
/** Libraries may print a few lines of their own beside the answer. */
const MOST_OTHER_LINES = 10_000

export async function askForJobs(
  wanted: RayWanted,
  order: RayJobOrder,
  { hosts, signal, timeoutMs, onEvent }: RayJobOptions,
): Promise<JobEnd> {
  const { head } = wanted
  const archive = order.do === 'submit' ? order.job.archive : undefined
  const script = `${pythonScript(wanted, head)}exec "$py" -c ${shellQuote(JOB_PROGRAM)} ${shellQuote(JSON.stringify(requestOf(order, dashboardAddress(wanted))))}`
  let reason: string | undefined
  let jobCount = 0
  let otherLineCount = 0
  const cut = new AbortController()
  const cutOff = (why: string) => {
    reason = why
    lines.stop()
    cut.abort()
  }
  const lines = new Lines(
    (line) => {
      const event = parseJobEvent(line)
      if (event === undefined && ++otherLineCount > MOST_OTHER_LINES)
        cutOff(`it printed more than ${MOST_OTHER_LINES} lines that are not answers, and was cut off`)
      else if (event?.type === 'job' && ++jobCount > MOST_JOBS) cutOff(`it lists more than ${MOST_JOBS} jobs`)
      else if (event?.type === 'error') reason = event.reason
      else if (event !== undefined) onEvent(event)
    },
    () => cutOff(TOO_LONG),
  )
  const result = await hosts.exec(head.host, inside(wanted, head, script, 'guarded'), {
    timeoutMs,
    signal: AbortSignal.any([signal, cut.signal]),
    ...(archive === undefined ? {} : { stdin: archive }),
    onOutput: (stream, text) => {
      if (stream === 'stdout') lines.push(text)
    },
  })
  const { outcome } = result
  if (outcome.kind === 'cancelled' && !cut.signal.aborted) return { kind: 'cancelled', reason: 'cancelled' }
  if (outcome.kind === 'unreachable' || outcome.kind === 'refused') return { kind: 'away', reason: outcome.reason }
  if (reason !== undefined) return { kind: 'refused', reason: printable(reason) }
  if (isSuccess(outcome)) return { kind: 'done' }
  return { kind: 'refused', reason: printable(reasonOfResult(result, formatOutcome)) }
}

function requestOf(order: RayJobOrder, dashboard: string): object {
  if (order.do !== 'submit') return { ...order, dashboard }
  const { entrypoint, id, environment, cpus, gpus, resources, archive } = order.job
  const job = {
    entrypoint,
    submission_id: id,
    entrypoint_num_cpus: cpus,
    entrypoint_num_gpus: gpus,
    entrypoint_resources: resources,
  }
  return { do: 'submit', dashboard, follow: order.follow, job, env: environment, archive: archive !== undefined }
}

/** A line of the program; undefined: something else that was printed. */
export function parseJobEvent(
  line: string,
): RayJobEvent | { readonly type: 'error'; readonly reason: string } | undefined {
  const event = record(parseJson(line))
  switch (event?.type) {
    case 'submitted':
      return { type: 'submitted', id: textOf(event.id) }
    case 'log':
      // Ray's own messages have colours wherever they are printed.
      return { type: 'log', text: textOf(event.text).replace(/\u001b\[[\d;]*m/g, '') }
    case 'stopped':
      return {
        type: 'stopped',
        isStopped: event.isStopped === true,
        ...(event.status === 'PENDING' ? { isPending: true } : {}),
      }
    case 'error':
      return { type: 'error', reason: lastLine(textOf(event.reason)) || 'Ray does not say why' }
    case 'job':
      return { type: 'job', job: jobOf(event) }
    default:
      return undefined
  }
}

/** ECMA-262: the last millisecond that a date can have. */
const MOST_MS = 8.64e15
/** What a shell sees of 256 is a success. */
const MOST_EXIT_CODE = 255

function dateOf(value: unknown): number | undefined {
  const ms = numberOf(value)
  return ms !== undefined && Math.abs(ms) <= MOST_MS ? ms : undefined
}

function jobOf(event: JsonRecord): RayJob {
  const [startMs, endMs] = [event.start_time, event.end_time].map(dateOf)
  const code = numberOf(event.driver_exit_code)
  const exitCode = Number.isInteger(code) && Math.abs(code ?? 0) <= MOST_EXIT_CODE ? code : undefined
  return {
    // What was started by ray.init and not submitted has a number only.
    id: textOf(event.submission_id) || textOf(event.job_id),
    status: textOf(event.status),
    entrypoint: textOf(event.entrypoint),
    // The end of its output follows, which is in its log anyway.
    message: textOf(event.message).split(/, last available logs|\n/, 1)[0] ?? '',
    ...defined({ startMs: startMs || undefined, endMs: endMs || undefined, exitCode }),
  }
}

/** Ray answers with a whole Python traceback, here and there with a full stop of its own in the last line. */
function lastLine(text: string): string {
  const lines = text.split('\n').filter((line) => /\w/.test(line))
  return (lines.findLast((line) => /^\w*(Error|Exception): /.test(line)) ?? lines.at(-1) ?? '').trim()
}

/**
 * The program through which Muster speaks to Ray's job server: Ray's own client, on the head, so that the dashboard need not
 * listen beyond it and a working directory is packaged as Ray does it. It reads one JSON object from its argument, what is on
 * stdin is a tar archive, and it prints one JSON object a line.
 */

export const JOB_PROGRAM = `import asyncio, json, os, shutil, sys, tempfile, logging
${OPENER}
${GUARD}
logging.disable(logging.WARNING)
order = json.loads(sys.argv[1])
def tell(**what):
    sys.stdout.write(json.dumps(what) + "\\n")
    sys.stdout.flush()
def fail(error):
    tell(type="error", reason=str(error).strip()[-2000:])
    sys.exit(0)
try:
    from ray.job_submission import JobSubmissionClient
    client = JobSubmissionClient("http://" + order["dashboard"])
except Exception as error: fail(error)
def details(job):
    found = {key: getattr(job, key, None) for key in ("submission_id", "job_id", "entrypoint", "message", "start_time", "end_time", "driver_exit_code", "driver_node_id")}
    found["status"] = str(getattr(job.status, "value", job.status))
    return found
async def follow(name):
    async for text in client.tail_job_logs(name): tell(type="log", text=text)
def submit():
    given = {key: value for key, value in order["job"].items() if value is not None}
    environment = {"env_vars": order["env"]} if order["env"] else {}
    directory = tempfile.mkdtemp(prefix="muster-job-") if order["archive"] else None
    try:
        if directory:
            import tarfile
            with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as archive:
                if hasattr(tarfile, "data_filter"): archive.extraction_filter = tarfile.tar_filter
                archive.extractall(directory)
            environment["working_dir"] = directory
        return client.submit_job(runtime_env=environment or None, **given)
    finally:
        if directory: shutil.rmtree(directory, ignore_errors=True)
try:
    name = order.get("id")
    if order["do"] == "list":
        for job in client.list_jobs(): tell(type="job", **details(job))
    elif order["do"] == "stop":
        stopped = bool(client.stop_job(name))
        status = client.get_job_status(name)
        tell(type="stopped", isStopped=stopped, status=str(getattr(status, "value", status)))
    else:
        if order["do"] == "submit":
            name = submit()
            tell(type="submitted", id=name)
        guard()
        if order["follow"]: asyncio.run(follow(name))
        elif order["do"] == "logs": tell(type="log", text=client.get_job_logs(name))
        tell(type="job", **details(client.get_job_info(name)))
except SystemExit: raise
except BaseException as error: fail(error)
`
