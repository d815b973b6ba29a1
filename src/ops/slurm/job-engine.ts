/**
 * Slurm as an engine of the queue: in each round one script on the login host submits, checks and stops jobs, under one lock. A job
 * has its directory there, and its key as its name in Slurm. Orders may be given twice.
 */
import { JOBS_DIRECTORY } from '../../base/left.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { Declared } from '../kernel/area.ts'
import { type LogPiece, NO_FILES_CODE, outputOn } from '../kernel/host-output.ts'
import { type OpsHosts, reasonOfResult, type ScriptResult } from '../kernel/host-port.ts'
import { formatOutcome, isSuccess } from '../run/outcome.ts'
import {
  BARRED,
  isPassing,
  jobOf,
  LINE_WIDTH,
  nowOf,
  parseJob,
  reasonWords,
  refusalWords,
  reportOf,
  type SlurmJob,
  type SlurmReport,
  type SlurmSight,
  type SlurmTimes,
  SQUEUE_FORMAT,
  SUSPENDED,
  startOf,
  timesOf,
  troubleWords,
} from './queue.ts'
import { type SlurmStart, slurmScript, whyNotSlurm } from './script.ts'
import { type SlurmSpec, section } from './section.ts'
import { parseUsage, type SlurmUsage, USAGE_PROGRAM } from './usage.ts'

type SlurmOrder = (SlurmStart & { readonly kind: 'start' }) | { readonly kind: 'check' | 'stop'; readonly key: string }

const ROUND_MS = 150_000
const TRIAL_MS = 30_000
const USAGE_MS = 60_000

/** For `--engine slurm` (cli/job/engines.ts). */
export const SLURM_ENGINE = {
  name: 'slurm',
  // Slurm decides the order of the jobs that it has; those that wait here can still be reordered.
  mostWaiting: 50,
  // Each poll is a request to Slurm's controller.
  pollMs: { soon: 500, late: 4_000 },
  summary: 'the Slurm cluster of hosts.yaml does',
  docs: 'docs/engines.md',
  refuses: ['--on', '--preemptible', '--copy-dir', '--silent'],
  startsGangs: true,
  startsOthers: true,
  // Quoted twice, it stays below what one argument of a program may have.
  mostCommandBytes: 24 * 1024,
  showsUsage: true,
  isDeclared: (inventory: Inventory) => sectionOf(inventory, section) !== undefined,
  nodeHosts: (inventory: Inventory) => sectionOf(inventory, section)?.cluster?.nodes ?? [],
  whyNot(spec: SlurmStart['spec'], inventory: Inventory) {
    const slurm = sectionOf(inventory, section)
    return slurm && whyNotSlurm(spec, slurm)
  },
  open({ inventory, endpoints }: Declared) {
    const slurm = sectionOf(inventory, section)
    return slurm && openSlurm(slurm, endpoints.get(slurm.login)?.address)
  },
}

/** `address`: of the login host. */
export function openSlurm(slurm: SlurmSpec, address?: string) {
  return {
    locate: async () =>
      address === undefined || address === slurm.login ? slurm.login : `${slurm.login} (${address})`,
    round: (orders: readonly SlurmOrder[], hosts: OpsHosts, signal: AbortSignal) => round(slurm, orders, hosts, signal),
    ...outputOn(slurm.login, (piece) => logScript(slurm, piece)),
    usage: (hosts: OpsHosts, signal: AbortSignal) => readUsage(slurm, hosts, signal),
    tryOut: (start: SlurmStart, hosts: OpsHosts, signal: AbortSignal) => tryOut(slurm, start, hosts, signal),
  }
}

/** In `text` a character is a byte. */
async function exec(slurm: SlurmSpec, program: string, hosts: OpsHosts, signal: AbortSignal, timeoutMs: number) {
  const result = await hosts.exec(slurm.login, 'exec sh -s', { stdin: Buffer.from(program), timeoutMs, signal })
  return { result, text: Buffer.from(result.stdout).toString('latin1') }
}

const failureOn = ({ login }: SlurmSpec, result: ScriptResult): string =>
  printable(`${login}: ${reasonOfResult(result, formatOutcome)}`)

/** Of one program: its answer stays below what is read of a host. */
const MOST_ORDERS = 1000

/** Never rejects. */
async function round(slurm: SlurmSpec, orders: readonly SlurmOrder[], hosts: OpsHosts, signal: AbortSignal) {
  const reports = new Map<string, SlurmReport>()
  const waits = new Map<string, SlurmWait>()
  const nodes = new Map<string, string>()
  const times = new Map<string, SlurmTimes>()
  let trouble: string | undefined
  let from = 0
  do {
    const part = orders.slice(from, from + MOST_ORDERS)
    const { result, text } = await exec(slurm, roundProgram(slurm, part), hosts, signal, ROUND_MS)
    if (!isSuccess(result.outcome)) {
      trouble = failureOn(slurm, result)
      break
    }
    const found = parseRound(part, text)
    trouble = found.trouble
    for (const [key, report] of found.reports) reports.set(key, report)
    for (const [key, wait] of found.waits ?? []) waits.set(key, wait)
    for (const [key, on] of found.nodes ?? []) nodes.set(key, on)
    for (const [key, own] of found.times ?? []) times.set(key, own)
    from += MOST_ORDERS
  } while (from < orders.length && trouble === undefined)
  return { trouble, reports, waits, nodes, times }
}

/** The last line of a whole answer. */
const END = 'end'
/** Jobs of the same name. */
const MOST_ALIKE = 16
const FACTS = ['claim', 'end', 'why', 'times', 'known', 'handed', 'refused', 'unwritten'] as const

/** The lines of `roundProgram`: those of squeue, `claim KEY …` and so on. A login host reports only jobs that it was asked about. */
export function parseRound(orders: readonly Pick<SlurmOrder, 'kind' | 'key'>[], text: string) {
  const sights = new Map(orders.map(({ key }) => [key, { jobs: [], isKnown: false } as Found]))
  const waits = new Map<string, SlurmWait>()
  const nodes = new Map<string, string>()
  const times = new Map<string, SlurmTimes>()
  let trouble: string | undefined = "could not parse the login host's answer"
  const nowS = nowOf(text)
  for (const line of text.split('\n')) {
    const job = parseJob(line, nowS)
    if (job !== undefined) {
      const sight = sights.get(job.name)
      if (sight === undefined) continue
      if (sight.jobs.length < MOST_ALIKE) sight.jobs.push(job)
      else sight.isUnclear = true
      continue
    }
    const [word = '', key = '', ...rest] = line.split(' ')
    const sight = sights.get(key)
    const fact = FACTS.find((known) => known === word)
    if (word === 'trouble') trouble = troubleWords(line.slice('trouble '.length))
    else if (line === END) trouble = undefined
    if (fact === undefined) {
      const odd = sights.get(line.slice(line.lastIndexOf(' ') + 1))
      if (odd !== undefined) odd.isUnclear = true
    }
    if (sight === undefined || fact === undefined) continue
    if (fact === 'known') sight.isKnown = true
    else if (fact === 'handed') sight.isHanded = true
    else if (fact === 'unwritten') waits.set(key, { why: UNWRITTEN })
    else if (fact === 'refused') sight.refusal = rest.join(' ')
    else sight[fact] = rest.join(' ')
  }
  const reports = new Map<string, SlurmReport>()
  // Without squeue nothing is known about a job.
  if (trouble !== undefined) return { trouble, reports }
  for (const { kind, key } of orders) {
    const sight = sights.get(key) as SlurmSight
    const report = reportOf(kind, sight)
    if (report !== undefined) reports.set(key, report)
    const { state, reason = '', startS, nodes: on = '' } = jobOf(sight) ?? {}
    if (report !== 'waiting' && on !== '') nodes.set(key, on)
    const own = report === undefined || nowS === undefined ? undefined : timesOf(sight, nowS)
    if (own !== undefined) times.set(key, own)
    if (report === 'waiting') waits.set(key, { why: reasonWords(reason), ...(startS === undefined ? {} : { startS }) })
    else if (report === 'running' && state === 'SUSPENDED') waits.set(key, { why: SUSPENDED })
    else if (report === undefined && sight.refusal !== undefined) waits.set(key, { why: refusalWords(sight.refusal) })
  }
  return { trouble, reports, waits, nodes, times }
}

const UNWRITTEN = 'cannot write its script on the login host: test its disk and quota with df and quota there'

type SlurmWait = { readonly why: string; readonly startS?: number }

type Found = { -readonly [K in keyof SlurmSight]: SlurmSight[K] } & { readonly jobs: SlurmJob[] }

/** Variables of the login that may stand for options which neither Muster nor hosts.yaml sets. */
const KEPT = ['account', 'partition', 'qos', 'reservation', 'constraint']

const missingWords = (login: string, bin: string | undefined, cluster: SlurmSpec['cluster']): string => {
  if (cluster !== undefined) return `Slurm is not set up on ${login}. Run: muster up slurm`
  return `${login} has no $program${bin === undefined ? ' in its PATH. Set bin in slurm of hosts.yaml' : ` in ${bin}`}`
}

/** `trouble` prints why nothing can be done, and ends the round. Variables of the login must not change the form of answers. */
const openProgram = ({ bin, directory, login, cluster, ...slurm }: SlurmSpec): string => `mask=$(umask)
umask 077
trouble() { printf 'trouble %s\\n' "$(printf %s "$1" | tr '\\n' ' ' | cut -c 1-400)"; exit 0; }
${bin === undefined ? '' : `PATH=${bin}:$PATH\n`}unset $(env | sed -nE '/^SBATCH_(${KEPT.filter(
  (name) => !Object.hasOwn(slurm, name),
)
  .join('|')
  .toUpperCase()})=/d; s/^((SQUEUE|SCANCEL|SBATCH)_[A-Z_]*)=.*/\\1/p')
command -v flock > /dev/null || trouble "${login} has no flock. Install util-linux there"
for program in sbatch squeue scancel; do
  command -v $program > /dev/null || trouble "${missingWords(login, bin, cluster)}"
done
place=${directory ?? JOBS_DIRECTORY}
said=$(mkdir -p "$place" 2>&1 && cd "$place" 2>&1) && cd "$place" || trouble "cannot use $place on ${login}\${said:+: $said}"
`

/**
 * While it holds the lock, no other round submits; what a killed one has submitted is found by its name, and later by the claim of
 * the job itself. A problem of one job does not hide what is known of the others; without the controller it tries no further one.
 */
export function roundProgram(slurm: SlurmSpec, orders: readonly SlurmOrder[]): string {
  if (orders.length === 0) return `echo ${END}\n`
  const calls = orders.map((order) =>
    order.kind === 'start'
      ? `start ${order.key} ${shellQuote(slurmScript(order, slurm))}`
      : `${order.kind} ${order.key}`,
  )
  return `${openProgram(slurm)}exec 9> .lock.slurm && flock -w 20 9
[ $? -ne 1 ] || trouble 'another round with Slurm is still under way'
queue=$( {
  # Too many for an argument of squeue.
  cat << 'KEYS'
${orders.map(({ key }) => key).join('\n')}

KEYS
  LC_ALL=C SLURM_TIME_FORMAT=%s squeue -h -a -t all -u "$(id -u)" -O ${shellQuote(SQUEUE_FORMAT)} 2>&1 9>&- && echo whole
} | LC_ALL=C awk '
  !begun { if ($0 == "") begun = 1; else keys[$0]; next }
  length($0) == ${LINE_WIDTH} && $1 ~ /^[0-9]+$/ && !($NF in keys) { next }
  { print }')
[ "\${queue##*
}" = whole ] || trouble "$(printf '%s\\n' "$queue" | tail -n 3)"
printf '%s\\n' "$queue"
names=" $(printf '%s\\n' "$queue" | sed 's/.* //' | tr '\\n' ' ')"
isqueued() { case $names in *" $1 "*) return 0;; esac; return 1; }
check() {
  for fact in claim end why times; do
    [ -f "$1/$fact" ] && IFS= read -r line < "$1/$fact" && printf '%s %s %.300s\\n' $fact "$1" "$line"
  done
  [ ! -f "$1/slurm-id" ] || echo "known $1"
  # Some sites answer squeue with a copy, which may be older than the job: then nothing is known yet.
  isqueued "$1" || [ -s "$1/end" ] || ! islisted "$1" || echo "unlisted $1"
}
islisted() {
  id=
  for fact in claim slurm-id; do [ -n "$id" ] || { [ -f "$1/$fact" ] && IFS=';' read -r id rest < "$1/$fact"; }; done
  case $id in '' | *[!0-9]*) return 1;; esac
  said=$(LC_ALL=C scontrol --oneliner show job "$id" 2> /dev/null 9>&-)
  case $said in *" JobName=$1 "*) ;; *) return 1;; esac
  for state in PENDING CONFIGURING RUNNING SUSPENDED COMPLETING; do
    case $said in *" JobState=$state "*) return 0;; esac
  done
  return 1
}
away=
noteaway() { case $1 in *[Uu]'nable to contact slurm controller'*) away=1;; esac; }
start() {
  if isqueued "$1" || [ -f "$1/claim" ] || [ -f "$1/slurm-id" ]; then check "$1"; return; fi
  [ -z "$away" ] || return
  if ! { mkdir -p "$1" && printf %s "$2" > "$1/script"; } 2> /dev/null; then
    echo "unwritten $1"
  elif said=$(cd "$1" && umask $mask && sbatch --parsable --job-name="$1" --output=out --no-requeue script 2>&1 < /dev/null 9>&-); then
    printf '%s\\n' "$said" | tail -n 1 > "$1/slurm-id"
    echo "handed $1"
  else
    noteaway "$said"
    printf 'refused %s %s\\n' "$1" "$(printf %s "$said" | tr '\\n' ' ' | cut -c 1-600)"
  fi
}
stop() {
  if isqueued "$1"; then [ -n "$away" ] || said=$(scancel --quiet -u "$(id -u)" -n "$1" 2>&1 9>&-) || noteaway "$said"
  elif ! [ -f "$1/claim" ] && ! [ -f "$1/slurm-id" ]; then
    # What another round may still be about to submit ends at once.
    mkdir -p "$1" && (set -C; echo ${BARRED} > "$1/claim") 2> /dev/null
  fi
  check "$1"
}
${calls.join('\n')}
echo "now $(date +%s)"
echo ${END}
`
}

function logScript({ directory }: SlurmSpec, { key, rank, fromByte, mostBytes }: LogPiece): string {
  const from = fromByte < 0 ? String(-fromByte) : `+${fromByte + 1}`
  // What kept a gang from its start is in the output of its script.
  const file = rank === undefined ? 'out' : `out.${rank}; [ -f $f ] || [ -e out.0 ] || f=out`
  return `cd ${directory ?? JOBS_DIRECTORY} || exit
cd ${key} 2>/dev/null || exit ${NO_FILES_CODE}
f=${file}
[ ! -f $f ] || tail -c ${from} $f | head -c ${mostBytes}`
}

/** A string: why nothing is known. Never rejects. */
async function readUsage(slurm: SlurmSpec, hosts: OpsHosts, signal: AbortSignal): Promise<SlurmUsage | string> {
  const { result, text } = await exec(slurm, openProgram(slurm) + USAGE_PROGRAM, hosts, signal, USAGE_MS)
  if (!isSuccess(result.outcome)) return failureOn(slurm, result)
  const trouble = /^trouble (.*)$/m.exec(text)?.[1]
  if (trouble !== undefined) return troubleWords(trouble)
  return parseUsage(text) ?? "could not parse the login host's answer"
}

/** The script, and when Slurm would start it, or why it never would. Never rejects. */
async function tryOut(slurm: SlurmSpec, start: SlurmStart, hosts: OpsHosts, signal: AbortSignal) {
  const script = slurmScript(start, slurm, true)
  const program = `${openProgram(slurm)}said=$(cd && printf %s ${shellQuote(script)} | sbatch --test-only 2>&1); code=$?
echo "now $(date +%s)"
echo "code $code"
printf '%s\\n' "$said"
`
  const { result, text } = await exec(slurm, program, hosts, signal, TRIAL_MS)
  if (!isSuccess(result.outcome)) return { script, trouble: failureOn(slurm, result) }
  return { script, ...parseTrial(text) }
}

/** `sbatch: Job 26 to start at 2026-11-23T07:00:00 using 1 processors on nodes n[1-2] in partition main` */
export function parseTrial(
  text: string,
): { readonly trouble: string } | { readonly isNever: true; readonly words: string } | { readonly words: string } {
  const trouble = /^trouble (.*)$/m.exec(text)?.[1]
  if (trouble !== undefined) return { trouble: troubleWords(trouble) }
  const [, code = '', said = ''] = /(?:^|\n)code (\d{1,3})\n(.*)$/s.exec(text) ?? []
  const [, at = '', nodes = ''] = /to start at (\S{1,40}) using \d+ processors on nodes (\S{1,400})/.exec(said) ?? []
  // In the time of that host, which may be hours from UTC: no more than a day off.
  const atS = Math.trunc(Date.parse(`${at}Z`) / 1000)
  const words =
    startOf(String(atS), nowOf(text)) !== undefined
      ? `Slurm would start it at ${at.replace('T', ' ')} on ${nodes}`
      : 'Slurm cannot say when it would start: jobs without a time limit come first'
  if (code === '0' && at !== '') return { words: printable(words) }
  if (code === '' || isPassing(said)) return { trouble: troubleWords(said) || 'sbatch does not say when' }
  return { isNever: true, words: refusalWords(said.replace(/^allocation failure: /m, 'sbatch: ')) }
}
