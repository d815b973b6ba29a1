/**
 * The area `k8s`: checks the cluster of hosts.yaml with kubectl, on the host that has the kubeconfig. It does not bring up a cluster; it
 * only creates the namespace.
 */
import { numberOf, parseJson, record, textOf } from '../../base/json-lines.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { type AreaFacts, type ChangeDirection, defineArea } from '../kernel/area.ts'
import { type Fact, knownValue } from '../kernel/fact.ts'
import { complaint, type Finding } from '../kernel/finding.ts'
import { THIS_MACHINE } from '../kernel/host-port.ts'
import { blocked, ifKnown, nothing, type Operation, operationOf, steps, type Verdict } from '../kernel/operation.ts'
import { reachWords, remoteWords } from './api.ts'
import { EXTENSIONS } from './discovery.ts'
import { configWords, kubectlWords, NO_KUBECTL_HINT } from './proxy.ts'
import { isDevice } from './resources.ts'
import { type KubernetesSpec, section } from './section.ts'

type ClusterNode = {
  readonly name: string
  readonly isReady: boolean
  readonly isCordoned: boolean
  /** By the name of the resource. */
  readonly gpus: ReadonlyMap<string, number>
}

/** kubectl's answers, up to its first failure. */
export type ClusterAnswer = {
  /** Undefined: it is not installed. */
  readonly kubectl?: string
  readonly context?: string
  readonly namespace?: string
  /** The version of the API server. */
  readonly server?: string
  /** Why it failed, in words. */
  readonly trouble?: string
  /** What answers in place of an API server, in words. */
  readonly foreign?: string
  /** Actions of `ACTIONS` that the credentials do not allow. */
  readonly forbidden: readonly string[]
  readonly hasNamespace?: boolean
  readonly mayCreateNamespace?: boolean
  /** Undefined: they may not be listed. */
  readonly nodes?: readonly ClusterNode[]
  /** `podgroups.scheduling.k8s.io` and so on. */
  readonly resources: readonly string[]
}

type ClusterFacts = { readonly cluster: ClusterAnswer }

type Wanted = KubernetesSpec & { readonly host: string }

/** What jobs, their pictures and `muster k8s` need in the namespace. */
const ACTIONS = [
  'create batch/jobs',
  'patch batch/jobs',
  'delete batch/jobs',
  'list batch/jobs',
  'create /services',
  'delete /services',
  'list /pods',
  'watch /pods',
  'get /pods/log',
  'create /pods/exec',
  'list /events',
]
const CREATE_NAMESPACES = 'create /namespaces'

/** An access review of `verb group/resource/subresource`, as a format of printf that takes the namespace. */
function reviewOf(action: string, namespace: string): string {
  const [verb = '', group = '', resource = '', subresource = ''] = action.split(/[ /]/)
  return JSON.stringify({
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: { verb, group, resource, subresource, namespace } },
  })
}

const REVIEWED = ['verb', 'group', 'resource', 'subresource'].map((name) => `{.spec.resourceAttributes.${name}}`)
/** `create batch/jobs/ true` */
const REVIEW = `${REVIEWED[0]} ${REVIEWED.slice(1).join('/')} {.status.allowed}{"\\n"}`

const ANSWER_LIMIT = 400_000

/** Each answer is a line: a word, then what kubectl printed, on one line. */
export function clusterScript(spec: KubernetesSpec): string {
  // Leaves no files in kubectl's cache.
  const kubectl = `${kubectlWords(spec)} --request-timeout=5s --cache-dir=/dev/null`
  const columns = ['.metadata.name', '.spec.unschedulable', '.status.conditions[?(@.type=="Ready")].status']
  const row = [...columns, '.status.allocatable'].map((path) => `{${path}}{"|"}`).join('')
  const reviews = [
    `echo ${shellQuote(reviewOf(CREATE_NAMESPACES, ''))}`,
    ...ACTIONS.map((action) => `printf ${shellQuote(`${reviewOf(action, '%s')}\\n`)} "$n"`),
  ]
  return `command -v kubectl >/dev/null || return 0
say() { printf '%s ' "$1"; tr '\\n\\t' '  ' | head -c ${ANSWER_LIMIT}; echo; }
k() { ${kubectl} "$@" 2>&1; }
k version --client -o json | say kubectl
n=$(k config view --minify -o 'jsonpath={.clusters[*].cluster.server}{" "}{.current-context}{" "}{.contexts[0].context.namespace}') || { echo "$n" | say no-context; return 0; }
echo "\${n%% *}" | say address
n=\${n#* }
echo "$n" | say context
case $n in *' '?*) n=\${n#* };; *) n=default;; esac
${spec.namespace === undefined ? '' : `n=${spec.namespace}`}
v=$(k get --raw /version) || { echo "$v" | say no-server; return 0; }
echo "$v" | say server
case $v in *gitVersion*) ;; *) return 0;; esac
k get namespace "$n" -o name | say namespace
{ ${reviews.join('; ')}; } | k create --validate=false -f - -o ${shellQuote(`jsonpath=${REVIEW}`)} | tr '\\n' ';' | say rights
k get nodes -o ${shellQuote(`jsonpath={range .items[*]}${row}{"\\n"}{end}`)} | tr '\\n' ';' | say nodes
k api-resources --no-headers -o name | say resources`
}

/** Pure. */
export function parseCluster(text: string): ClusterAnswer {
  const said = new Map<string, string>()
  for (const line of text.split('\n')) {
    const space = line.indexOf(' ')
    if (space > 0) said.set(line.slice(0, space), line.slice(space + 1).trim())
  }
  const rights = (said.get('rights') ?? '').split(';').map((line) => line.trim())
  const isAnswer = (action: string, answer: string) =>
    rights.includes(`${action}${'/'.repeat(3 - action.split('/').length)} ${answer}`)
  const client = record(record(parseJson(said.get('kubectl') ?? ''))?.clientVersion)
  const [context = '', namespace = ''] = (said.get('context') ?? '').split(' ')
  const version = said.get('server')
  const server = textOf(record(parseJson(version ?? ''))?.gitVersion)
  const lost = said.get('no-server')
  const none = said.get('no-context')
  const known = said.get('namespace')
  const nodes = said.get('nodes')
  return {
    ...(said.has('kubectl') && { kubectl: remoteWords(textOf(client?.gitVersion)) || 'of an unknown version' }),
    ...(context !== '' && { context: remoteWords(context) }),
    ...(namespace !== '' && { namespace: remoteWords(namespace) }),
    ...(server !== '' && { server: remoteWords(server) }),
    ...(server === '' && version !== undefined && { foreign: foreignWords(version, said.get('address') ?? '') }),
    ...(none !== undefined && { trouble: configWords(withoutPrefix(none)) }),
    ...(lost !== undefined && { trouble: reachWords(withoutPrefix(lost)) }),
    ...(known?.startsWith('namespace/') && { hasNamespace: true }),
    ...(known !== undefined && /not ?found/i.test(known) && { hasNamespace: false }),
    mayCreateNamespace: isAnswer(CREATE_NAMESPACES, 'true'),
    ...(nodes !== undefined && !/^error|forbidden/i.test(nodes) && { nodes: nodes.split(';').flatMap(nodeOf) }),
    forbidden: ACTIONS.filter((action) => isAnswer(action, 'false')),
    resources: (said.get('resources') ?? '').split(/\s+/),
  }
}

/** `address`: of the kubeconfig, which may hold a password. */
function foreignWords(answer: string, address: string): string {
  const where = remoteWords(address.replace(/\/\/[^/]*@/, '//')) || "the cluster's address"
  const what = answer.startsWith('<')
    ? 'a web page'
    : record(parseJson(answer)) === undefined
      ? 'no JSON'
      : 'JSON without a version of Kubernetes'
  return `what answers at ${where} is not the API server of a Kubernetes cluster: it sends ${what}`
}

const withoutPrefix = (text: string): string => remoteWords(text).replace(/^error: /i, '')

function nodeOf(row: string): ClusterNode[] {
  const [name = '', cordoned = '', ready = '', allocatable = ''] = row.trim().split('|')
  if (name === '') return []
  const gpus = Object.entries(record(parseJson(allocatable)) ?? {}).flatMap(([resource, amount]) => {
    const count = numberOf(amount)
    return isDevice(resource) && count !== undefined && count > 0 ? [[resource, count] as const] : []
  })
  return [{ name, isReady: ready === 'True', isCordoned: cordoned === 'true', gpus: new Map(gpus) }]
}

function factsOf(wanted: Wanted): { readonly cluster: Fact<ClusterAnswer> } {
  return { cluster: { script: clusterScript(wanted), parse: parseCluster } }
}

/** Pure. */
export function planKubernetes(
  direction: ChangeDirection,
  wanted: Wanted,
  { facts }: AreaFacts<ClusterFacts>,
): Operation[] {
  const { host, namespace } = wanted
  const fact = facts.get(host)?.facts.cluster
  if (fact === undefined) return []
  const operation = (name: string, title: string, verdict: Verdict) => operationOf('k8s', host, name, title, verdict)
  const cluster = ifKnown(host, 'what kubectl says', fact, (answer) => clusterVerdict(host, answer))
  if (cluster.kind !== 'nothing' || namespace === undefined || fact.kind !== 'known')
    return direction === 'down' ? [] : [operation('cluster', 'the cluster', cluster)]
  const verdict =
    direction === 'down' ? nothing('Muster never deletes a namespace') : namespaceVerdict(wanted, namespace, fact.value)
  return [operation('cluster', 'the cluster', cluster), operation('namespace', `the namespace ${namespace}`, verdict)]
}

const FOREIGN_HINT = 'Check the server in the kubeconfig, and whether a proxy on the way wants a login first'

function clusterVerdict(host: string, { kubectl, context, server, trouble, foreign }: ClusterAnswer): Verdict {
  if (kubectl === undefined) return blocked(host, 'no-kubectl', 'kubectl is not installed', NO_KUBECTL_HINT)
  if (trouble !== undefined) return blocked(host, context === undefined ? 'no-context' : 'unreachable', trouble)
  if (foreign !== undefined) return blocked(host, 'not-kubernetes', foreign, FOREIGN_HINT)
  if (server === undefined) return blocked(host, 'unreachable', 'kubectl says nothing about the API server')
  return nothing(`${context ?? 'the cluster'} answers: Kubernetes ${server}, kubectl ${kubectl}`)
}

function namespaceVerdict(
  wanted: Wanted,
  namespace: string,
  { hasNamespace, mayCreateNamespace }: ClusterAnswer,
): Verdict {
  const { host } = wanted
  if (hasNamespace === true) return nothing('it exists')
  if (hasNamespace === undefined) return nothing('the credentials do not allow reading it')
  if (mayCreateNamespace !== true)
    return blocked(
      host,
      'no-namespace',
      `the namespace ${namespace} does not exist, and the credentials do not allow creating it`,
      'Ask an administrator of the cluster to create it.',
    )
  const kubectl = `${kubectlWords(wanted)} --request-timeout=20s`
  return steps('missing', [
    {
      id: 'create',
      title: `create the namespace ${namespace}`,
      changes: [`+ namespace ${namespace}`],
      run: { script: `${kubectl} create namespace ${namespace}` },
      check: { script: `${kubectl} get namespace ${namespace} -o name`, lack: `the cluster does not show it` },
    },
  ])
}

/** Pure. */
export function findingsOf({ host }: Wanted, { facts }: AreaFacts<ClusterFacts>): readonly Finding[] {
  const answer = knownValue(facts.get(host)?.facts.cluster)
  if (answer?.server === undefined) return []
  return complaintsOf(answer).map((each) => ({ host, ...each }))
}

/** `create jobs` */
const actionWords = (action: string): string => action.replace(/ \w*\//, ' ')

function complaintsOf({ forbidden, nodes, resources, namespace }: ClusterAnswer) {
  const known = Object.values(EXTENSIONS).flatMap(({ group, resource, title }) =>
    resources.includes(`${resource}.${group}`) ? [title] : [],
  )
  const ready = nodes?.filter(({ isReady, isCordoned }) => isReady && !isCordoned) ?? []
  const others = nodes?.filter((node) => !ready.includes(node)) ?? []
  const gpus = Map.groupBy(
    ready.flatMap((node) => [...node.gpus]),
    ([resource]) => resource,
  )
  const totals = [...gpus].map(([resource, all]) => `${all.reduce((sum, [, count]) => sum + count, 0)} ${resource}`)
  return [
    ...(forbidden.length > 0
      ? [
          complaint('risk', 'rights', `the credentials do not allow: ${forbidden.map(actionWords).join(', ')}`, {
            hint: 'Ask an administrator of the cluster for a role that allows what you need.',
          }),
        ]
      : []),
    nodes === undefined
      ? complaint(
          'note',
          'nodes-hidden',
          'the credentials do not allow listing nodes: Muster shows what pods hold, but not what nodes have',
        )
      : complaint('note', 'nodes', `${ready.length} of ${nodes.length} nodes accept pods`, {
          detail: remoteWords(totals.join(', ')) || 'no GPUs',
        }),
    ...(others.length > 0
      ? [
          complaint('risk', 'nodes-not-ready', 'nodes that are cordoned or not ready', {
            detail: remoteWords(others.map(({ name }) => name).join(', ')),
          }),
        ]
      : []),
    complaint('note', 'extensions', `extensions for gangs and queues: ${known.join(', ') || 'none'}`, {
      ...(namespace !== undefined && { detail: `namespace ${namespace}` }),
    }),
  ]
}

export const area = defineArea<Wanted, ClusterFacts>({
  name: 'k8s',
  wantedOf({ inventory }) {
    const spec = sectionOf(inventory, section)
    return spec && { ...spec, host: spec.via ?? THIS_MACHINE }
  },
  hostsOf: ({ host }) => [host],
  factsOf,
  plan: planKubernetes,
  verify: async (wanted, areaFacts) => findingsOf(wanted, areaFacts),
})
