/** A Ray cluster from its head's dashboard (`/api/version`, `/api/v0/nodes`), from Ray 2.9 on. Pure. */
import { list, parseJson, record, textOf } from './json.ts'

export type ClusterNode = {
  readonly id: string
  readonly ip: string
  readonly isHead: boolean
  readonly isAlive: boolean
  /** Why it is dead. */
  readonly message: string
  /** By Ray's names: CPU, GPU, memory and object_store_memory in bytes, and what hosts.yaml names. */
  readonly resources: Readonly<Record<string, number>>
  /** Ray's own begin with `ray.io/`. */
  readonly labels: ReadonlyMap<string, string>
}

export type ClusterView =
  | {
      readonly kind: 'answers'
      readonly ray: string
      /** Undefined: this version of Ray does not report it. */
      readonly python?: string
      readonly session: string
      /** Whether it asks for a token. */
      readonly hasToken: boolean
      readonly nodes: readonly ClusterNode[]
    }
  /** Nothing listens where its dashboard should, or it does not answer. */
  | { readonly kind: 'silent'; readonly because: string }
  /** Something else than Ray's dashboard answers. */
  | { readonly kind: 'foreign'; readonly because: string }

/** What the script of facts.ts printed: one JSON object with the bodies of the three answers, or `error`. */
export function parseClusterView(text: string): ClusterView | undefined {
  const answer = record(parseJson(text))
  if (answer === undefined) return undefined
  const error = answer.error
  if (typeof error === 'string') return { kind: answer.answered === true ? 'foreign' : 'silent', because: error }
  const version = record(answer.version)
  const ray = version?.ray_version
  if (typeof ray !== 'string') return { kind: 'foreign', because: 'the answer does not come from Ray' }
  const python = record(record(answer.metadata)?.data)?.pythonVersion
  return {
    kind: 'answers',
    ray,
    hasToken: record(answer.authentication)?.authentication_mode === 'token',
    session: textOf(version?.session_name),
    nodes: parseNodes(answer.nodes),
    ...(typeof python === 'string' ? { python } : {}),
  }
}

/** The body of `/api/v0/nodes?detail=1`. */
export function parseNodes(body: unknown): readonly ClusterNode[] {
  return list(record(record(record(body)?.data)?.result)?.result).flatMap((node): ClusterNode[] => {
    if (typeof node.node_id !== 'string') return []
    const amounts = Object.entries(record(node.resources_total) ?? {}).filter(
      (pair): pair is [string, number] => typeof pair[1] === 'number',
    )
    return [
      {
        id: node.node_id,
        ip: textOf(node.node_ip),
        isHead: node.is_head_node === true,
        isAlive: node.state === 'ALIVE',
        message: textOf(node.state_message),
        resources: Object.fromEntries(amounts),
        labels: new Map(Object.entries(record(node.labels) ?? {}).map(([name, label]) => [name, String(label)])),
      },
    ]
  })
}
