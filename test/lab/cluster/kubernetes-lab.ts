/**
 * Kubernetes on a host of a lab: etcd, the API server, the scheduler, the controller manager, and kwok, which plays nodes with GPUs
 * and the pods on them. Pods that really run take a further host of the lab for each real node: kubelet and containerd, with an image
 * that is made here. Files are below /run/lab of each host, so they end with the lab.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { waitUntil } from '../../support/wait-until.ts'
import { cgroupMounts, cgroupOf, removeCgroup, sweepCgroups } from './cgroups.ts'
import type { LabHost } from './host.ts'
import { kubernetesPrograms } from './kubernetes-programs.ts'
import { type Lab, type LabOptions, startLab } from './lab.ts'
import { type LabProcess, signalProcess } from './processes.ts'

/** For `requirement`. */
export const KUBERNETES_PARTS = ['root', 'namespaces', 'ssh', 'ip', 'nsenter', 'kubernetes', 'etcd', 'python3'] as const

export type KubernetesNode = {
  readonly name: string
  readonly cpus: number
  readonly memoryMb: number
  readonly gpus: number
  readonly labels?: Readonly<Record<string, string>>
}

export type KubernetesOptions = {
  /** That kwok plays; by default two with 2 GPUs, and one with more cores and none. */
  readonly nodes?: readonly KubernetesNode[]
  /** Feature gates that are off by default. With GenericWorkload, the API server has the alpha version of PodGroup, too. */
  readonly gates?: readonly string[]
}

/** Of the API server: its JSON, or its text where it is not JSON. */
export type KubernetesAnswer = { readonly status: number; readonly body: unknown }

export const KUBERNETES_HOST = 'kube'
/** The image on real nodes: busybox, with a link for each of its programs. */
export const KUBERNETES_IMAGE = 'localhost/lab:1'
/** For hosts.yaml: a kubeconfig on this machine. */
export const KUBERNETES_SECTION = `k8s: { context: lab, namespace: default, image: "${KUBERNETES_IMAGE}" }\n`

const SCRIPTS = join(import.meta.dirname, 'scripts')
const SOURCE = join(import.meta.dirname, 'kubernetes')
/** Where hosts have the programs. */
const PLACE = '/opt'
const FILES = '/run/lab/kubernetes'
const PORT = 6443
const KWOK_PORT = 10_247
const CONTROL = ['kube-scheduler', 'kube-controller-manager', 'kwok'] as const
/** In seconds of an idle machine it is ready in ten. */
const PATIENCE_MS = 240_000
const VIEWER = 'viewer'

export class KubernetesLab {
  readonly lab: Lab
  readonly host: LabHost
  readonly #options: KubernetesOptions
  readonly #directory: string
  readonly #tokens = { admin: randomBytes(16).toString('hex'), viewer: randomBytes(16).toString('hex') }
  readonly #realNodes: LabHost[] = []

  /** The lab needs the hosts and mounts of `kubernetesLabOptions`. */
  constructor(lab: Lab, options: KubernetesOptions = {}) {
    this.lab = lab
    this.host = lab.host(KUBERNETES_HOST)
    this.#options = options
    this.#directory = join(lab.directory, 'hosts', KUBERNETES_HOST)
  }

  get url(): string {
    return `https://${this.host.address}:${PORT}`
  }

  /** Adds lines to the output of all pods that kwok plays, those that are followed, too. */
  print(...lines: readonly string[]): void {
    const now = new Date().toISOString()
    appendFileSync(this.#podLog, lines.map((line) => `${now} stdout F ${line}\n`).join(''))
  }

  /** Resolves when all nodes are ready and pods can be made. `realNodes`: hosts of the lab. */
  async start(realNodes: readonly string[] = []): Promise<void> {
    const { host, lab } = this
    this.#writeFiles()
    const showKubectl = (programs: string) =>
      `mount -t overlay -o ro,lowerdir=${programs}/bin:/usr/local/bin overlay /usr/local/bin`
    await lab.run(['sh', '-c', showKubectl(await kubernetesPrograms())])
    await mustExec(host, `mkdir -p /root/.kube && cp ${FILES}/config /root/.kube/ && ${showKubectl(PLACE)}`)
    await this.#spawn(
      host,
      'etcd',
      `/usr/bin/etcd --data-dir ${FILES}/etcd --unsafe-no-fsync --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379`,
    )
    await this.startServer()
    await this.#create([
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { name: VIEWER, namespace: 'default' },
        rules: [{ apiGroups: ['', 'batch', 'events.k8s.io'], resources: ['*'], verbs: ['get', 'list', 'watch'] }],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: VIEWER, namespace: 'default' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: VIEWER },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: VIEWER }],
      },
    ])
    for (const name of CONTROL) await this.#startControl(name)
    await this.#spawn(host, 'python3', `/usr/bin/python3 ${FILES}/dns.py ${host.address} ${FILES}/api.sock`)
    await this.addNodes(this.#options.nodes ?? NODES)
    await waitUntil(
      async () => (await this.request('GET', '/api/v1/namespaces/default/serviceaccounts/default')).status === 200,
      'the service account of the namespace default',
      PATIENCE_MS,
    )
    await Promise.all(realNodes.map((name) => this.addRealNode(name)))
  }

  /** Nodes that kwok plays. Resolves when they are ready. */
  async addNodes(nodes: readonly KubernetesNode[]): Promise<void> {
    await this.#create(nodes.map(nodeObject))
    await this.#ready(nodes.map(({ name }) => name))
  }

  /** Turns a host of the lab into a node on which pods really run. Resolves when it is ready. */
  async addRealNode(name: string, gpus = 0): Promise<void> {
    const host = this.lab.host(name)
    sweepCgroups()
    const group = cgroupOf(this.lab.directory)
    this.lab.afterStop(() => removeCgroup(group))
    const place = join(this.lab.directory, 'hosts', name, 'kubernetes')
    mkdirSync(place, { recursive: true })
    for (const file of ['config', 'real-node.sh'])
      writeFileSync(join(place, file), readFileSync(join(this.#directory, 'kubernetes', file)))
    const cgroups = cgroupMounts().map(({ kind, place, options }) => `${kind} ${place} ${options}\n`)
    writeFileSync(join(place, 'cgroups'), cgroups.join(''))
    await mustExec(
      host,
      `sh ${FILES}/real-node.sh ${host.address} ${podNetwork(host)} ${this.host.address} ${group} ${KUBERNETES_IMAGE}`,
    )
    await this.#spawn(host, 'containerd', `/usr/bin/containerd --config ${FILES}/containerd.toml`)
    await mustExec(
      host,
      `until ctr --address ${FILES}/containerd.sock version > /dev/null 2>&1; do sleep 0.1; done
ctr --address ${FILES}/containerd.sock --namespace k8s.io images import ${FILES}/image.tar`,
    )
    await this.#spawn(
      host,
      'kubelet',
      `${PLACE}/bin/kubelet --kubeconfig ${FILES}/config --config ${FILES}/kubelet.yaml --hostname-override ${name} --node-ip ${host.address} --node-labels lab/real=true --root-dir ${FILES}/kubelet --cert-dir ${FILES}/certificates`,
    )
    await this.#route(host)
    this.#realNodes.push(host)
    await this.#ready([name])
    if (gpus > 0) {
      const capacity = { 'nvidia.com/gpu': String(gpus) }
      await this.#must(
        'PATCH',
        `/api/v1/nodes/${name}/status`,
        { status: { capacity } },
        'application/merge-patch+json',
      )
      await waitUntil(async () => {
        const { status } = (await this.#must('GET', `/api/v1/nodes/${name}`)) as { status: { allocatable: object } }
        return 'nvidia.com/gpu' in status.allocatable
      }, `the GPUs of ${name}`)
    }
  }

  /** Its clients see their connections closed. */
  async killServer(): Promise<void> {
    await this.#kill(this.host, 'kube-apiserver', 'SIGKILL')
  }

  /** Resolves when it answers. */
  async startServer(): Promise<void> {
    const { host } = this
    const gates = this.#options.gates ?? []
    const workloads = gates.includes('GenericWorkload') ? ['--runtime-config=scheduling.k8s.io/v1alpha2=true'] : []
    const key = `${FILES}/service-account.key`
    await this.#spawn(
      host,
      'kube-apiserver',
      [
        `${PLACE}/bin/kube-apiserver --etcd-servers=http://127.0.0.1:2379 --bind-address=0.0.0.0 --advertise-address=${host.address}`,
        `--secure-port=${PORT} --cert-dir=${FILES}/certificates --token-auth-file=${FILES}/tokens.csv --authorization-mode=RBAC`,
        `--service-account-key-file=${key} --service-account-signing-key-file=${key} --service-account-issuer=https://lab`,
        '--service-cluster-ip-range=10.96.0.0/16 --allow-privileged --kubelet-preferred-address-types=InternalIP',
        ...workloads,
        // Debian's etcd cannot send lists as watches, and clients that ask for it wait for seconds.
        ...this.#gates('WatchList=false'),
      ].join(' '),
    )
    if (!this.#processes(host, 'kubectl').length)
      await this.#spawn(
        host,
        'kubectl',
        `${PLACE}/bin/kubectl proxy --kubeconfig=${FILES}/config --unix-socket=${FILES}/api.sock --reject-methods=^$ --reject-paths=^$`,
      )
    await waitUntil(async () => (await this.request('GET', '/readyz')).status === 200, 'the API server', PATIENCE_MS)
  }

  /** The text of an object, or the refusal of the API server. */
  async request(
    method: string,
    path: string,
    body?: unknown,
    contentType = 'application/json',
  ): Promise<KubernetesAnswer> {
    const socketPath = join(this.#directory, 'kubernetes', 'api.sock')
    return await new Promise((resolve) => {
      const headers = { host: 'localhost', ...(body === undefined ? {} : { 'content-type': contentType }) }
      const order = httpRequest({ socketPath, method, path, headers }, (answer) => {
        let text = ''
        answer.setEncoding('utf8').on('data', (part) => {
          text += part
        })
        answer.on('close', () => resolve({ status: answer.statusCode ?? 0, body: parsed(text) }))
      })
      // The proxy is not there yet.
      order.on('error', ({ message }) => resolve({ status: 0, body: message }))
      order.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }

  /** Runs kubectl on its host as the administrator; an error where it fails. */
  async kubectl(command: string, stdin?: string): Promise<string> {
    return await mustExec(
      this.host,
      stdin === undefined ? `kubectl ${command}` : `kubectl ${command} << 'END_OF_INPUT'\n${stdin}\nEND_OF_INPUT`,
    )
  }

  /** Ends a pod that kwok plays. */
  async endPod(name: string, exitCode: number, namespace = 'default'): Promise<void> {
    const patch = { metadata: { annotations: { 'lab/exit': String(exitCode) } } }
    await this.#must('PATCH', `/api/v1/namespaces/${namespace}/pods/${name}`, patch, 'application/merge-patch+json')
  }

  async #create(objects: readonly KubernetesObject[]): Promise<void> {
    for (const object of objects) {
      const group = object.apiVersion.includes('/') ? `/apis/${object.apiVersion}` : `/api/${object.apiVersion}`
      const scope = object.metadata.namespace === undefined ? '' : `/namespaces/${object.metadata.namespace}`
      await this.#must('POST', `${group}${scope}/${object.kind.toLowerCase()}s`, object)
    }
  }

  async #must(method: string, path: string, body?: unknown, contentType?: string): Promise<unknown> {
    const answer = await this.request(method, path, body, contentType)
    if (answer.status >= 200 && answer.status < 300) return answer.body
    throw new Error(`${method} ${path}: ${answer.status}\n${JSON.stringify(answer.body)}`)
  }

  async #ready(names: readonly string[]): Promise<void> {
    await waitUntil(
      async () => {
        const { body } = await this.request('GET', '/api/v1/nodes')
        const { items = [] } = body as { items?: NodeObject[] }
        return names.every((name) => items.some((node) => node.metadata.name === name && isReady(node)))
      },
      `the nodes ${names.join(', ')}`,
      PATIENCE_MS,
    )
  }

  async #startControl(name: (typeof CONTROL)[number]): Promise<void> {
    const { host } = this
    const certificate = `${FILES}/certificates/apiserver`
    const client = `--kubeconfig=${FILES}/config --authentication-kubeconfig=${FILES}/config --authorization-kubeconfig=${FILES}/config --leader-elect=false ${this.#gates().join(' ')}`
    // Their limits of 20 to 50 requests a second make a thousand pods take a minute.
    const manager = `${client} --kube-api-qps=1000 --kube-api-burst=1000`
    const options = {
      'kube-scheduler': manager,
      'kube-controller-manager': `${manager} --service-account-private-key-file=${FILES}/service-account.key --root-ca-file=${certificate}.crt`,
      kwok: `--kubeconfig=${FILES}/config --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --config=${FILES}/kwok.yaml --node-lease-duration-seconds=40 --node-ip=${host.address} --node-port=${KWOK_PORT} --server-address=0.0.0.0:${KWOK_PORT} --tls-cert-file=${certificate}.crt --tls-private-key-file=${certificate}.key`,
    }
    await this.#spawn(host, name, `${PLACE}/bin/${name} ${options[name]}`)
  }

  get #podLog(): string {
    return join(this.#directory, 'pods.log')
  }

  #gates(...further: readonly string[]): string[] {
    const gates = [...(this.#options.gates ?? []).map((gate) => `${gate}=true`), ...further]
    return gates.length === 0 ? [] : [`--feature-gates=${gates.join(',')}`]
  }

  /** Each real node has a network for its pods, which all hosts reach through it. */
  async #route(node: LabHost): Promise<void> {
    const route = (to: LabHost) => `ip route replace ${podNetwork(to)} via ${to.address}`
    await this.lab.run(['sh', '-c', route(node)])
    await mustExec(this.host, route(node))
    for (const other of this.#realNodes) {
      await mustExec(other, route(node))
      await mustExec(node, route(other))
    }
  }

  /** Its output is in NAME.log. */
  async #spawn(host: LabHost, name: string, command: string): Promise<void> {
    await mustExec(host, `mkdir -p ${FILES} && { setsid ${command} < /dev/null >> ${FILES}/${name}.log 2>&1 & }`)
  }

  async #kill(host: LabHost, name: string, signal: NodeJS.Signals): Promise<void> {
    for (const { pid } of this.#processes(host, name)) signalProcess(pid, signal)
    await waitUntil(() => this.#processes(host, name).length === 0, `the end of ${name}`)
  }

  /** The kernel keeps 15 characters of a name. */
  #processes(host: LabHost, name: string): LabProcess[] {
    return host.processes().filter((each) => each.name === name.slice(0, 15) && each.state !== 'Z')
  }

  #writeFiles(): void {
    const { admin, viewer } = this.#tokens
    const place = join(this.#directory, 'kubernetes')
    mkdirSync(place, { recursive: true, mode: 0o700 })
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    writeFileSync(join(place, 'service-account.key'), privateKey.export({ type: 'sec1', format: 'pem' }))
    writeFileSync(join(place, 'tokens.csv'), `${admin},admin,1,system:masters\n${viewer},${VIEWER},2\n`)
    for (const file of ['kwok.yaml', 'dns.py']) writeFileSync(join(place, file), readFileSync(join(SOURCE, file)))
    writeFileSync(join(place, 'real-node.sh'), readFileSync(join(SCRIPTS, 'real-node.sh')))
    writeFileSync(this.#podLog, '')
    const users = Object.entries(this.#tokens)
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'lab',
      // The API server signs its certificate itself.
      clusters: [{ name: 'lab', cluster: { server: this.url, 'insecure-skip-tls-verify': true } }],
      users: users.map(([name, token]) => ({ name, user: { token } })),
      contexts: users.map(([user]) => ({ name: user === 'admin' ? 'lab' : user, context: { cluster: 'lab', user } })),
    }
    writeFileSync(join(place, 'config'), JSON.stringify(config), { mode: 0o600 })
    mkdirSync(join(this.lab.directory, 'home', '.kube'), { recursive: true, mode: 0o700 })
    writeFileSync(join(this.lab.directory, 'home', '.kube', 'config'), JSON.stringify(config), { mode: 0o600 })
  }
}

const NODES: readonly KubernetesNode[] = [
  { name: 'w1', cpus: 4, memoryMb: 8000, gpus: 2 },
  { name: 'w2', cpus: 4, memoryMb: 8000, gpus: 2 },
  { name: 'w3', cpus: 8, memoryMb: 16_000, gpus: 0 },
]

/** What a lab needs for Kubernetes: its host, one for each real node, and the programs. */
export async function kubernetesLabOptions(
  realNodes: readonly string[] = [],
): Promise<{ names: string[]; mounts: Record<string, string> }> {
  return { names: [KUBERNETES_HOST, ...realNodes], mounts: { [PLACE]: await kubernetesPrograms() } }
}

/** `realNodes`: names of nodes on which pods really run. */
export async function kubernetesLab(
  options: KubernetesOptions & { readonly realNodes?: readonly string[] } = {},
  { names = [], mounts = {}, ...labOptions }: LabOptions = {},
): Promise<{ readonly lab: Lab; readonly kubernetes: KubernetesLab }> {
  const { realNodes = [] } = options
  const own = await kubernetesLabOptions(realNodes)
  const lab = await startLab({ ...labOptions, names: [...own.names, ...names], mounts: { ...own.mounts, ...mounts } })
  try {
    const kubernetes = new KubernetesLab(lab, options)
    await kubernetes.start(realNodes)
    return { lab, kubernetes }
  } catch (error) {
    await lab.stop()
    throw error
  }
}

type KubernetesObject = {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly [field: string]: unknown
}

type NodeObject = {
  readonly metadata: { readonly name: string }
  readonly spec: { readonly taints?: readonly { readonly key: string }[] }
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

/** The controller manager removes the taint some time after the node reports to be ready. */
function isReady({ spec, status }: NodeObject): boolean {
  const isReported = status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
  return isReported && (spec.taints ?? []).every(({ key }) => !key.startsWith('node.kubernetes.io/'))
}

function nodeObject({ name, cpus, memoryMb, gpus, labels = {} }: KubernetesNode) {
  const gpu = gpus === 0 ? {} : { 'nvidia.com/gpu': String(gpus) }
  const resources = { cpu: String(cpus), memory: `${memoryMb}Mi`, pods: '110', ...gpu }
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: { 'kwok.x-k8s.io/node': 'fake' },
      labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', ...labels },
    },
    status: { capacity: resources, allocatable: resources },
  }
}

/** Out of the last number of its address. */
function podNetwork(host: LabHost): string {
  return `10.82.${host.address.split('.').at(-1)}.0/24`
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

async function mustExec(host: LabHost, command: string): Promise<string> {
  const { code, stdout, stderr } = await host.exec(command)
  if (code !== 0) throw new Error(`${command} on ${host.name}: exit ${code}\n${stdout}${stderr}`)
  return stdout
}
