/**
 * TensorFlow's roles (TF_CONFIG as TensorFlow 2.21 reads it): chief, worker, ps, evaluator. Servers never end by themselves, so the
 * job is done when the chief is, or without one when all workers are.
 */

import { MusterError } from '../../base/errors.ts'
import { pythonWords } from '../../base/python-words.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { askCard, askPorts, askProgram, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { FAIL, needs, SET_CARDS } from './in-gang.ts'
import { type GangOnEngine, HOST_ROLE, type LaunchedGang, type Launcher, ORDER, type Role } from './launcher.ts'
import { parseRole } from './roles.ts'
import { beginOf, cardsOf, withPython } from './torchrun.ts'

const ROLES = ['chief', 'worker', 'ps', 'evaluator']

export const tf: Launcher = {
  name: 'tf',
  summary: 'start the chief, workers and parameter servers of TensorFlow with TF_CONFIG',
  options: [
    {
      flags: 'role <name=count>',
      summary: `start COUNT bundles as ${ROLES.join(', ')}; NAME=COUNT:gpu=1,cpu=4 for requests of their own`,
      isRepeatable: true,
    },
    ORDER,
  ],
  shape({ role }, bundles, request) {
    const roles: readonly Role[] =
      role === undefined
        ? [{ name: 'worker', count: bundles, request }]
        : role.split(' ').map((text) => parseRole(text, request, ROLES))
    const twice = roles.find(({ name }, index) => roles.findIndex((other) => other.name === name) < index)
    if (twice !== undefined) throw new MusterError('usage', `--role ${twice.name} is given twice`)
    const names = roles.flatMap(({ name, count }) => Array<string>(count).fill(name))
    const many = ['chief', 'evaluator'].find((one) => names.filter((name) => name === one).length > 1)
    if (many !== undefined) throw new MusterError('usage', `--role ${many}: there can be only one ${many}`)
    if (role !== undefined && bundles > 1 && bundles !== names.length)
      throw new MusterError('usage', `--bundles ${bundles} contradicts --role, which has ${names.length} bundles`)
    const leader = names.includes('chief') ? 'chief' : 'worker'
    if (!names.includes(leader)) throw new MusterError('usage', '--role: a chief or a worker is missing')
    return { roles, leaders: names.flatMap((name, rank) => (name === leader ? [rank] : [])) }
  },
  // Of ring_alg.cc; with parameter servers, workers do not reduce among themselves.
  ringDirection: ({ role = '' }) => (/\bps=/.test(role) ? undefined : 'next'),
  inGang: tfInGang,
  refusesInGang: ['order'],
  imports: () => ({ module: 'tensorflow' }),
  next(gang, bundle) {
    const { bundles, command } = gang
    const ports = portsOfTasks(bundles)
    const question = (index: number) =>
      formatQuestion(askProgram('python3'), askCard(bundles[index]?.address ?? ''), ...portsFor(gang, index))
    // Each task calls all others.
    const step = nextQuestion(gang, bundle, question, (index) => ports[index])
    if (step !== undefined) return step
    const addresses = bundles.map(
      ({ address }, rank) => `${address.includes(':') ? `[${address}]` : address}:${ports[rank]}`,
    )
    const cluster = Object.fromEntries(
      ROLES.filter((name) => name !== 'evaluator' && bundles.some(({ role }) => role === name)).map((name) => [
        name,
        addresses.filter((_, rank) => bundles[rank]?.role === name),
      ]),
    )
    const { role = '', index = 0, said = {} } = bundles[bundle] ?? {}
    return {
      kind: 'start',
      command: withPython(command),
      environment: {
        ...cardsOf(said),
        TF_CONFIG: JSON.stringify({ cluster, task: { type: role, index } }),
        MUSTER_TF_JOB: role,
        MUSTER_TF_INDEX: String(index),
      },
    }
  },
}

/** The first bundle of a host asks for the ports of all bundles there, so that they differ. */
const firstOn = (bundles: LaunchedGang['bundles'], bundle: number): number =>
  bundles.findIndex(({ host }) => host === bundles[bundle]?.host)

function portsFor(gang: LaunchedGang, bundle: number): readonly string[] {
  const { bundles, spec } = gang
  if (firstOn(bundles, bundle) !== bundle) return []
  const count = bundles.filter(({ host }) => host === bundles[bundle]?.host).length
  return [askPorts(count, spec.ports, beginOf(gang))]
}

function portsOfTasks(bundles: LaunchedGang['bundles']): readonly (number | undefined)[] {
  const left = new Map<string, number[]>()
  return bundles.map(({ host, said }) => {
    if (!left.has(host)) left.set(host, [...portsOf(said)])
    return left.get(host)?.shift()
  })
}

/** Ports lie apart, as jobs that follow each other have MASTER_PORTs that follow each other. */
const TF_PROGRAM = `import json, os, sys
env = os.environ
roles, command = sys.argv[1].split(","), sys.argv[2]
hosts = (env.get("MUSTER_ADDRESSES") or env["MUSTER_HOSTS"]).split(",")
if len(hosts) != len(roles):
    sys.exit("muster: the engine told %d addresses, not %d" % (len(hosts), len(roles)))
def address(rank):
    host = hosts[rank]
    port = 20000 + (int(env["MASTER_PORT"]) + 211 * hosts[:rank].count(host)) % 10000
    return "%s:%d" % ("[%s]" % host if ":" in host else host, port)
cluster = {}
for rank, role in enumerate(roles):
    if role != "evaluator":
        cluster.setdefault(role, []).append(address(rank))
rank = int(env["RANK"])
task = {"type": roles[rank], "index": roles[:rank].count(roles[rank])}
env["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": task})
env["MUSTER_TF_JOB"], env["MUSTER_TF_INDEX"] = task["type"], str(task["index"])
env.setdefault("PYTHONUNBUFFERED", "1")
os.execvp("sh", ["sh", "-c", command])`

function tfInGang({ command, roles }: GangOnEngine): string {
  const names = roles.flatMap(({ name, count }) => Array<string>(count).fill(name === HOST_ROLE ? 'worker' : name))
  return `${FAIL}${needs('python3')}${SET_CARDS}exec python3 ${pythonWords(TF_PROGRAM)} ${names.join()} ${shellQuote(withPython(command))}`
}
