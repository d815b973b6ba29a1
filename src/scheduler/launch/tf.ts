/**
 * TensorFlow's roles (TF_CONFIG as TensorFlow 2.21 reads it): chief, worker, ps, evaluator. Servers never end by themselves, so the
 * job is done when the chief is, or without one when all workers are.
 */
import { MusterError } from '../../base/errors.ts'
import { askCard, askPorts, askProgram, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { type Launcher, ORDER, type Role } from './launcher.ts'
import { parseRole } from './roles.ts'
import { beginOf, cardsOf } from './torchrun.ts'

const ROLES = ['chief', 'worker', 'ps', 'evaluator']

export const tf: Launcher = {
  name: 'tf',
  summary: 'TensorFlow: chief, workers and parameter servers with TF_CONFIG',
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
    const names = roles.flatMap(({ name, count }) => Array<string>(count).fill(name))
    if (names.filter((name) => name === 'chief').length > 1)
      throw new MusterError('usage', '--role chief: there can be only one chief')
    const leader = names.includes('chief') ? 'chief' : 'worker'
    if (!names.includes(leader)) throw new MusterError('usage', '--role: a chief or a worker is missing')
    return { roles, leaders: names.flatMap((name, rank) => (name === leader ? [rank] : [])) }
  },
  // Of ring_alg.cc; with parameter servers, workers do not reduce among themselves.
  ringDirection: ({ role = '' }) => (/\bps=/.test(role) ? undefined : 'next'),
  next(gang, bundle) {
    const { bundles, command, spec } = gang
    const question = (index: number) =>
      formatQuestion(
        askProgram('python3'),
        askCard(bundles[index]?.address ?? ''),
        askPorts(1, spec.ports, beginOf(gang) + index),
      )
    const step = nextQuestion(gang, bundle, question)
    if (step !== undefined) return step
    const addresses = bundles.map(
      ({ address, said }) => `${address.includes(':') ? `[${address}]` : address}:${portsOf(said)[0]}`,
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
      command,
      environment: {
        ...cardsOf(said, spec),
        TF_CONFIG: JSON.stringify({ cluster, task: { type: role, index } }),
        MUSTER_TF_JOB: role,
        MUSTER_TF_INDEX: String(index),
      },
    }
  },
}
