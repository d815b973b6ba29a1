/** `ray` in hosts.yaml. */
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { isPort } from '../../inventory/host-name.ts'
import {
  defineSection,
  hostName,
  hostSet,
  ipAddress,
  label,
  memory,
  port,
  type SectionContext,
} from '../../inventory/hosts-yaml-schema.ts'
import { didYouMean } from '../../inventory/nearest-word.ts'
import {
  choice,
  failType,
  type Located,
  located,
  mapOf,
  object,
  oneOrMore,
  type Schema,
  text,
  textOffsetOf,
} from '../../inventory/yaml-reader.ts'

/** Ports that every node listens on; of workers the first and the last. Undefined: Ray's choice. */
export type RayPorts = {
  readonly nodeManager?: number
  readonly objectManager?: number
  readonly workers?: readonly [number, number]
}

export type RaySpec = {
  readonly head: string
  readonly workers: readonly string[]
  readonly port: number
  readonly dashboardHost: string
  readonly dashboardPort: number
  /** Every request needs the cluster's token. */
  readonly hasToken: boolean
  readonly ports: RayPorts
  /** Addresses that nodes announce, by host; the others announce the address at which SSH reaches them. */
  readonly nodeIps: Readonly<Record<string, string>>
  /** Of each node; undefined: Ray's choice. */
  readonly objectStoreBytes?: number
  readonly tempDirectory?: string
  /** Names of the hosts' labels that their nodes get. */
  readonly labels: readonly string[]
  /** systemd restarts nodes that died, and starts them at boot. */
  readonly isSupervised: boolean
  /** Environment variables of the nodes and of everything that runs on them. */
  readonly variables: Readonly<Record<string, string>>
}

/** Ray creates sockets below it, and a socket's path has 107 bytes. */
const shortPath = text(
  'absolute path',
  [/^\//, 'must begin with /'],
  [/^.{1,40}$/, 'is longer than 40 characters: the paths of the sockets below it would be too long'],
  [/^[\w./-]+$/, 'may contain letters, digits, _ . - and / only'],
)
const PORT_RANGE = /^(\d{1,5})-(\d{1,5})$/
/** The first and the last. */
const portRange: Schema<readonly [number, number]> = {
  type: 'range of ports such as 20000-20999',
  json: () => ({ type: 'string', pattern: PORT_RANGE.source, $comment: 'Muster checks more: that both are ports.' }),
  read(node, reader, where) {
    const range = text('range of ports').read(node, reader, where)
    if (range === undefined) return undefined
    const [, first = 0, last = 0] = (PORT_RANGE.exec(range) ?? []).map(Number)
    if (isPort(first) && isPort(last) && first <= last) return [first, last]
    return failType(node, reader, where, 'a range of ports such as 20000-20999')
  },
}

export const section = defineSection(
  'ray',
  {
    schema: object({
      head: { schema: hostName, about: 'The host of the head node.', example: 'm10', isRequired: true },
      workers: { schema: hostSet, about: 'The hosts of the workers.', example: '"@workers"', fallback: 'none' },
      port: { schema: port, about: "The head's port (GCS).", example: '6333', fallback: '6379' },
      dashboard_host: {
        schema: text('address'),
        about: 'The address on which the dashboard of the head listens. Muster reaches it through the SSH connection.',
        example: '127.0.0.1',
        fallback: '127.0.0.1',
      },
      dashboard_port: { schema: port, about: "The dashboard's port.", example: '8265', fallback: '8265' },
      auth: {
        schema: choice(['token']),
        about: 'Every request to the cluster needs its token, which Muster creates. Needs Ray 2.52.',
        example: 'token',
        fallback: 'none: anyone who can reach the head can run programs on all nodes',
      },
      ports: {
        schema: object({
          node_manager: {
            schema: port,
            about: "The port of a node's raylet.",
            example: '6700',
            fallback: 'any free port',
          },
          object_manager: {
            schema: port,
            about: 'The port for transfers of objects.',
            example: '6701',
            fallback: 'any free port',
          },
          workers: {
            schema: portRange,
            about: 'Ports for the processes that run tasks or actors, one each.',
            example: '20000-20999',
            fallback: '`10002-19999`',
          },
        }),
        about: 'Ports on which nodes listen for each other; set them where a firewall has to allow them.',
        example: '{ node_manager: 6700, object_manager: 6701, workers: 20000-20999 }',
      },
      node_ips: {
        schema: mapOf(ipAddress, 'host'),
        about: 'The addresses that nodes announce to each other, if SSH uses other ones (NAT, WSL2).',
        example: '{ m8: 10.0.0.8 }',
        fallback: 'the address that SSH uses',
      },
      object_store: {
        schema: memory,
        about: "Memory of each node's object store.",
        example: '10GiB',
        fallback: "Ray's choice: 30 % of the memory",
      },
      temp_dir: {
        schema: shortPath,
        about: 'The directory for sessions, sockets and logs of the nodes.',
        example: '/scratch/ray',
        fallback: '`/tmp/ray`',
      },
      labels: {
        schema: located(oneOrMore(text('label'))),
        about: 'Which `labels` of a host its node gets, for tasks that select nodes by label. Needs Ray 2.49.',
        example: '[rack, zone]',
        fallback: 'none',
      },
      supervise: {
        schema: choice(['systemd']),
        about:
          'systemd restarts nodes that died, and starts them at boot: with a system unit if the login is root, else with a user unit.',
        example: 'systemd',
        fallback: 'dead nodes stay down until `muster ray up`',
      },
      env: {
        schema: mapOf(label, 'name'),
        about: 'Environment variables of the nodes and of everything that runs on them.',
        example: '{ NCCL_SOCKET_IFNAME: eth0 }',
      },
    }),
    about: 'A Ray cluster.',
  },
  (raw, context): RaySpec | undefined => {
    const { head, workers, port: gcsPort = 6379, dashboard_host = '127.0.0.1', dashboard_port = 8265 } = raw
    const { node_ips = [], object_store, temp_dir, env = [], auth, ports, labels, supervise } = raw
    if (!head) return undefined
    for (const { key, keyNode } of env) {
      if (/^[A-Za-z_]\w*$/.test(key)) continue
      context.fail(textOffsetOf(keyNode), `${printable(key)} is not a name of an environment variable`)
    }
    const nodeIps = node_ips.map(({ key, value, keyNode }) => [
      context.knownHost({ value: key, offset: textOffsetOf(keyNode) }),
      value,
    ])
    return {
      nodeIps: Object.fromEntries(nodeIps),
      variables: Object.fromEntries(env.map(({ key, value }) => [key, value])),
      ...defined({ objectStoreBytes: object_store, tempDirectory: temp_dir }),
      head: context.knownHost(head),
      workers: workers === undefined ? [] : context.expand(workers),
      port: gcsPort,
      dashboardHost: dashboard_host,
      dashboardPort: dashboard_port,
      hasToken: auth === 'token',
      labels: labelsOfHosts(labels, context),
      isSupervised: supervise === 'systemd',
      ports: defined({
        nodeManager: ports?.node_manager,
        objectManager: ports?.object_manager,
        workers: ports?.workers,
      }),
    }
  },
)

/** A label that no host has is a slip of the pen. */
function labelsOfHosts(labels: Located<readonly string[]> | undefined, { hosts, fail }: SectionContext) {
  const known = [...new Set(hosts.flatMap((host) => Object.keys(host.labels ?? {})))]
  for (const name of labels?.value ?? []) {
    if (!known.includes(name))
      fail(labels?.offset ?? 0, `no host has a label ${printable(name)}${didYouMean(name, known)}`)
  }
  return labels?.value ?? []
}
