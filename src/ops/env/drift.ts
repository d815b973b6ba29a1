/** Drift: how the environments of hosts differ, and how bad each difference is. Pure. */
import { GRAVITIES, type Gravity, sortByGravity } from '../kernel/finding.ts'
import type { DockerFacts } from './docker.ts'
import { differingPart, type PrefixFacts, type SystemFacts } from './facts.ts'

export type ItemKind = 'system' | 'python' | 'environment' | 'package' | 'image' | 'container'

/** One thing to compare. */
export type Item = {
  readonly kind: ItemKind
  /** As people call it: `glibc`, `numpy`. */
  readonly name: string
  readonly value: string
  /** A difference that the value does not show: conda's build. */
  readonly detail?: string
}

/** What is compared of a host, by kind and name. */
export type HostItems = ReadonlyMap<string, Item>

export type DriftRow = {
  readonly kind: ItemKind
  readonly name: string
  readonly gravity: Gravity
  /** Undefined: the reference does not have it. */
  readonly reference?: string
  /** Of the hosts that differ; undefined: it is not there. */
  readonly values: ReadonlyMap<string, string | undefined>
}

export type Drift = {
  /** The reference host; undefined: the majority is the reference. */
  readonly followed?: string
  readonly hosts: readonly string[]
  /** The worst first. */
  readonly rows: readonly DriftRow[]
}

const ABSENT = 'not there'

export function itemsOf(system: SystemFacts | undefined, content: PrefixFacts | DockerFacts | undefined): HostItems {
  const items: Item[] = []
  if (system !== undefined) {
    const { architecture, libc, nvidiaDriver, cuda } = system
    const named = { architecture, 'C library': libc, 'NVIDIA driver': nvidiaDriver, CUDA: cuda }
    for (const [name, value] of Object.entries(named)) if (value) items.push({ kind: 'system', name, value })
  }
  if (content !== undefined) items.push(...('image' in content ? dockerItems(content) : prefixItems(content)))
  return new Map(items.map((item) => [keyOf(item), item]))
}

function prefixItems(prefix: PrefixFacts): Item[] {
  if (prefix.kind === 'none' || prefix.kind === 'other') {
    return [{ kind: 'environment', name: 'environment', value: prefix.kind === 'none' ? ABSENT : prefix.because }]
  }
  const packages = [...prefix.packages].map(([name, { version, build, by }]): Item => {
    const detail = by === 'conda' ? build : undefined
    return { kind: 'package', name, value: version, ...(detail === undefined ? {} : { detail }) }
  })
  return [
    { kind: 'environment', name: 'environment', value: prefix.kind },
    { kind: 'python', name: 'Python', value: prefix.python ?? 'does not run' },
    // Its version is Python's.
    ...packages.filter(({ name }) => name !== 'python'),
    ...prefix.broken.map((name): Item => ({ kind: 'package', name: `${name}: files`, value: 'no list of them' })),
  ]
}

function dockerItems({ image, container }: DockerFacts): Item[] {
  if (image === undefined) return [{ kind: 'image', name: 'image', value: ABSENT }]
  return [
    { kind: 'image', name: 'image', value: `${image.layers.length} layers ${image.digest.slice(0, 12)}` },
    { kind: 'image', name: 'architecture of the image', value: image.architecture },
    { kind: 'container', name: 'container', value: container === undefined ? ABSENT : container.state },
  ]
}

function keyOf({ kind, name }: Pick<Item, 'kind' | 'name'>): string {
  return `${kind} ${name}`
}

/** Compares with the followed host if it has an environment, else with the majority. */
export function driftOf(followed: string, hosts: ReadonlyMap<string, HostItems>): Drift {
  const own = hosts.get(followed)
  const isBare = (items: HostItems) => LACKS.some((key) => items.get(key)?.value === ABSENT)
  const isThere = own !== undefined && !isBare(own)
  const keys = new Map([...hosts.values()].flatMap((items) => [...items]))
  const rows = [...keys].flatMap(([key, { kind, name }]): DriftRow[] => {
    const isOfContent = kind === 'package' || kind === 'python'
    // One row is enough for a host without an environment.
    const asked = [...hosts].filter(([, items]) => !(isOfContent && isBare(items)))
    const usual = isThere ? own.get(key) : mostCommon(asked.map(([, items]) => items.get(key)))
    // A missing environment is no reference.
    const reference = LACKS.includes(key) && usual?.value === ABSENT ? undefined : usual
    const differing = asked.filter(([, items]) => !isSame(items.get(key), reference))
    if (differing.length === 0) return []
    const values = new Map(differing.map(([host, items]) => [host, shown(items.get(key), reference)]))
    const gravity = worst(differing.map(([, items]) => gravityOf({ kind, name }, reference, items.get(key))))
    const referenceText = reference === undefined ? undefined : shown(reference, differing[0]?.[1].get(key))
    return [{ kind, name, gravity, values, ...(referenceText === undefined ? {} : { reference: referenceText }) }]
  })
  const byKind = rows.toSorted(
    (one, two) => KINDS.indexOf(one.kind) - KINDS.indexOf(two.kind) || (one.name < two.name ? -1 : 1),
  )
  return { hosts: [...hosts.keys()], rows: sortByGravity(byKind), ...(isThere ? { followed } : {}) }
}

const LACKS = ['environment environment', 'image image']
const KINDS: readonly ItemKind[] = ['system', 'environment', 'image', 'container', 'python', 'package']

function isSame(one: Item | undefined, two: Item | undefined): boolean {
  return one?.value === two?.value && one?.detail === two?.detail
}

/** The build is shown only if it is the difference. */
function shown(item: Item | undefined, other: Item | undefined): string | undefined {
  if (item === undefined) return undefined
  return item.detail !== undefined && item.value === other?.value ? `${item.value} ${item.detail}` : item.value
}

function mostCommon(items: readonly (Item | undefined)[]): Item | undefined {
  const groups = Map.groupBy(items, (item) => JSON.stringify([item?.value, item?.detail]))
  let best: readonly (Item | undefined)[] = []
  for (const group of groups.values()) if (group.length > best.length) best = group
  return best[0]
}

/** Ray compares itself exactly; of these, another minor version reads or computes something else. */
const EXACT = new Set(['ray'])
const DELICATE =
  /^(torch|torchvision|torchaudio|numpy|cloudpickle|pydantic|vllm|tensorflow|jax|jaxlib|pyarrow|nvidia-nccl.*|nccl|cuda.*)$/
/** What installs, and is not imported. */
const TOOLS = new Set(['pip', 'setuptools', 'wheel', 'uv', 'conda', 'conda-pack'])

function gravityOf({ kind, name }: Pick<Item, 'kind' | 'name'>, reference: Item | undefined, item: Item | undefined) {
  if (kind === 'package') return packageGravity(name, reference?.value, item?.value)
  if (kind === 'system') return name === 'architecture' ? 'blocker' : 'risk'
  return kind === 'container' ? 'risk' : 'blocker'
}

function packageGravity(name: string, reference: string | undefined, value: string | undefined): Gravity {
  if (TOOLS.has(name)) return 'note'
  if (name.endsWith(': files')) return 'risk'
  if (EXACT.has(name)) return reference === undefined ? 'note' : 'blocker'
  // Extra packages do no harm; missing ones cannot be imported.
  if (reference === undefined) return 'note'
  if (value === undefined) return 'risk'
  const part = differingPart(reference, value)
  if (part === 'major') return 'risk'
  return part === 'minor' && DELICATE.test(name) ? 'risk' : 'note'
}

function worst(gravities: readonly Gravity[]): Gravity {
  return GRAVITIES.find((each) => gravities.includes(each)) ?? 'note'
}
