/** What env would do about an image and its container on each host. Pure. */
import { createHash } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { printable } from '../../base/printable.ts'
import { type Known, knownValue } from '../kernel/fact.ts'
import { blocked, ifKnown, nothing, type Operation, type Step, steps, type Verdict } from '../kernel/operation.ts'
import {
  bringerOf,
  bringImage,
  buildImage,
  CONTAINER_LABEL,
  type Container,
  containerRuns,
  type DockerFacts,
  type DockerImage,
  forgetImage,
  isNoteSilent,
  LOADED,
  LOADING,
  loadImage,
  noteLoaded,
  pullImage,
  removeContainer,
  removeImage,
  removeImageFile,
  runContainer,
  SOURCE_LABEL,
  saveImage,
  startContainer,
  UNFINISHED,
} from './docker.ts'
import { type EnvAreaFacts, envId, keptElsewhere, type OwnFacts, operation } from './plan.ts'
import { type EnvWanted, parcelOf } from './wanted.ts'

type Wanted = EnvWanted<'docker'>
/** The host that receives the file of the image for a host: itself, or the one whose home it shares. */
type KeeperOf = (host: string) => string

const FILE = 'image as a file'
const short = (image: DockerImage) => image.digest.slice(0, 12)
const hasSteps = ({ verdict }: Operation) => verdict.kind === 'steps'

/** Blocked if the daemon cannot be used. */
function onDocker(host: string, own: OwnFacts, decide: (facts: DockerFacts) => Verdict): Verdict {
  return ifKnown(host, 'Docker', own.content as Known<DockerFacts>, (facts) =>
    facts.trouble === undefined ? decide(facts) : blocked(host, 'no-docker', `Docker: ${facts.trouble}`),
  )
}

export function planDockerUp(wanted: Wanted, areaFacts: EnvAreaFacts): Operation[] {
  const { facts } = areaFacts
  const { from } = wanted.spec
  const source = facts.get(from)?.facts
  const made = source === undefined ? undefined : makeImage(wanted, source)
  // The image that the others should have; undefined until it is made.
  const followed =
    made?.verdict.kind === 'nothing' ? knownValue(source?.content as Known<DockerFacts>)?.image : undefined
  const elsewhere = keptElsewhere('up', wanted, areaFacts, 'parcel')
  const keeperOf: KeeperOf = (host) => elsewhere.get(host)?.keeper ?? host
  const loads = [...facts]
    .filter(([host]) => host !== from)
    .map(([host, { facts: own }]) => takeImage(wanted, host, own, source === undefined, followed, keeperOf(host)))
  const containers = [...facts].map(([host, { facts: own }]) => {
    const isImageThere = [made, ...loads].some((each) => each?.host === host && each.verdict.kind === 'nothing')
    return holdContainer(wanted, host, own, isImageThere)
  })
  return [
    ...(made === undefined ? [] : [made]),
    ...(loads.some(hasSteps) ? [packImage(wanted)] : []),
    ...bringImages(wanted, loads, keeperOf),
    ...loads,
    ...containers,
    // Last: a host stops at its first failure.
    ...tidy(wanted, areaFacts, loads, keeperOf),
  ]
}

/** On the followed host: build or pull the image, or keep it. */
function makeImage(wanted: Wanted, source: OwnFacts): Operation {
  const { spec, file, key } = wanted
  const { from: host, image } = spec
  const parcel = parcelOf(wanted)
  const notes = knownValue(source.parcel)
  const verdict = onDocker(host, source, ({ image: there }) => {
    const bringer = there && notes && bringerOf(notes, host, there)
    if (file?.kind !== 'text') {
      if (there !== undefined && bringer === undefined) return nothing(`${image} exists (${short(there)})`)
      return imageSteps(
        there,
        { id: 'pull', title: `pull ${image}`, run: pullImage(image, parcel, host) },
        image,
        bringer,
      )
    }
    // A build leaves no note.
    const isOther = bringer !== undefined || (notes !== undefined && isNoteSilent(notes))
    if (there?.labels[SOURCE_LABEL] === key && !isOther)
      return nothing(`${image} is built from ${file.path} (${short(there)})`)
    const to = `${parcel}/context`
    const context = { from: undefined, path: dirname(file.path), kind: 'directory', to } as const
    const dockerfile = basename(file.path)
    const run = buildImage({ image, source: key, dockerfile, context, parcel, host, isAnew: isOther })
    return imageSteps(there, { id: 'build', title: `build ${image} from ${file.path}`, run }, image, bringer)
  })
  return operation('image', host, 'image', verdict)
}

/** `there`: the image that this step replaces. */
function imageSteps(
  there: DockerImage | undefined,
  step: Omit<Step, 'changes'>,
  image: string,
  /** The host that the image was brought from that is there, and that is followed no more. */
  bringer?: string,
): Verdict {
  const [state, sign] = there === undefined ? (['missing', '+'] as const) : (['differs', '~'] as const)
  return steps(state, [
    { ...step, changes: [`${sign} ${image}${bringer === undefined ? '' : `, which ${printable(bringer)} made`}`] },
  ])
}

function packImage(wanted: Wanted): Operation {
  const { from: host, image } = wanted.spec
  const parcel = parcelOf(wanted)
  const title = `write ${image} to a file for the others`
  const step = { id: 'save', title, changes: [`+ ${parcel}`], run: saveImage(image, parcel) }
  return operation('file', host, FILE, steps('missing', [step]), [envId('image', host)])
}

/** Copies the file to each home where an image will be loaded, except the followed host's. */
function bringImages(wanted: Wanted, loads: readonly Operation[], keeperOf: KeeperOf): readonly Operation[] {
  const { from, image } = wanted.spec
  const parcel = parcelOf(wanted)
  const keepers = new Set(loads.filter(hasSteps).map(({ host }) => keeperOf(host)))
  keepers.delete(from)
  const run = bringImage(parcel, from)
  const step = { id: 'bring', title: `bring ${image} from ${from}`, changes: [`+ ${parcel}`], run }
  return [...keepers].map((host) => operation('file', host, FILE, steps('missing', [step]), [envId('file', from)]))
}

/** `keeper`: the host that receives the file for their shared home. */
function takeImage(
  wanted: Wanted,
  host: string,
  own: OwnFacts,
  isSourceAway: boolean,
  followed: DockerImage | undefined,
  keeper: string,
): Operation {
  const { image, from } = wanted.spec
  const verdict = onDocker(host, own, ({ image: there }) => {
    if (isSourceAway) {
      return there === undefined
        ? blocked(host, 'not-reached', `${from}, which has the image, cannot be reached`)
        : nothing(`${image} exists (${short(there)}); ${from}, which it follows, cannot be reached`)
    }
    if (there !== undefined && there.digest === followed?.digest)
      return nothing(`${image} is the one of ${from} (${short(there)})`)
    const run = loadImage(image, parcelOf(wanted), host, from)
    return imageSteps(there, { id: 'load', title: `load ${image} from ${from}`, run }, image)
  })
  return operation('image', host, 'image', verdict, isSourceAway ? [] : [envId('file', keeper)])
}

function hasNote(own: OwnFacts, note: string): boolean {
  return knownValue(own.parcel)?.content?.includes(note) === true
}

/** Removes the file from each home once all its hosts have loaded it, also one that an interrupted run left. */
function tidy(
  wanted: Wanted,
  { facts }: EnvAreaFacts,
  loads: readonly Operation[],
  keeperOf: KeeperOf,
): readonly Operation[] {
  const parcel = parcelOf(wanted)
  return [...facts].flatMap(([host, { facts: own }]) => {
    const awaited = host === wanted.spec.from ? loads : loads.filter((load) => keeperOf(load.host) === host)
    const isLoaded = loads.some((load) => load.host === host && load.verdict.kind === 'nothing')
    const note = { title: 'note that Muster loaded the image', changes: [], run: noteLoaded(parcel, host) }
    const removal = { title: 'remove the file of the image', changes: [`- ${parcel}`], run: removeImageFile(parcel) }
    const isPart = awaited.some(hasSteps)
    const isLeft = keeperOf(host) === host && (isPart || hasNote(own, UNFINISHED))
    const all = [isLoaded && hasNote(own, LOADING) && { id: 'note', ...note }, isLeft && { id: 'remove', ...removal }]
    const after = awaited.map(({ id }) => id)
    // As a part of what is missing it is no difference of its own.
    const tidied = operation('tidy', host, FILE, steps(isPart ? 'missing' : 'differs', all), after)
    return hasSteps(tidied) ? [tidied] : []
  })
}

function containerOf({ spec }: Wanted): Container {
  const { name, image, restart, options, command = [] } = spec
  const settings = JSON.stringify([name, image, restart, options, command])
  const mark = createHash('sha256').update(settings).digest('hex').slice(0, 16)
  return { name, image, restart, options, command, mark }
}

/** `isImageThere`: the image on the host does not change. */
function holdContainer(wanted: Wanted, host: string, own: OwnFacts, isImageThere: boolean): Operation {
  const container = containerOf(wanted)
  const { name, image, mark } = container
  const verdict = onDocker(host, own, ({ container: there, image: present }) => {
    const check = containerRuns(container)
    const run = (change: '+' | '~', why: string): Step => ({
      id: 'run',
      title: `run ${name}${why}`,
      changes: [`${change} container ${name} of ${image}`],
      run: runContainer(container),
      check,
    })
    if (there === undefined) return steps('missing', [run('+', '')])
    const label = there.labels[CONTAINER_LABEL]
    if (label === undefined) {
      const hint = `Remove it (docker rm ${name}), or choose another name in hosts.yaml.`
      return blocked(host, 'in-the-way', `a container ${name} exists that Muster did not create`, hint)
    }
    if (!isImageThere || there.imageId !== present?.id)
      return steps('differs', [run('~', ' again: its image has changed')])
    if (label !== mark) return steps('differs', [run('~', ' again: its settings in hosts.yaml have changed')])
    if (there.state === 'running') return nothing(`the container ${name} runs`)
    const start = { title: `start ${name}, which is ${there.state}`, run: startContainer(name) }
    return steps('differs', [{ id: 'start', ...start, changes: [`~ container ${name}`], check }])
  })
  return operation('container', host, 'container', verdict, [envId('image', host)])
}

export function planDockerDown(wanted: Wanted, { facts }: EnvAreaFacts): Operation[] {
  const { name, image } = wanted.spec
  const parcel = parcelOf(wanted)
  const remove = (id: string, title: string, what: string, run: Step['run']): Step => ({
    id,
    title,
    changes: [`- ${what}`],
    run,
  })
  return [...facts].flatMap(([host, { facts: own }]) => {
    const container = onDocker(host, own, ({ container: there }) => {
      if (there === undefined) return nothing(`there is no container ${name}`)
      if (there.labels[CONTAINER_LABEL] === undefined)
        return nothing(`the container ${name} was not created by Muster: it stays`)
      const title = `stop and remove ${name}`
      return steps('differs', [remove('remove', title, `container ${name}`, removeContainer(name))])
    })
    const images = onDocker(host, own, ({ image: there }) => {
      const isOwn = there !== undefined && (hasNote(own, LOADED) || there.labels[SOURCE_LABEL] !== undefined)
      const hasFiles = knownValue(own.parcel)?.isThere === true
      const otherwise =
        there === undefined ? `there is no image ${image}` : `${image} was not brought by Muster: it stays`
      const all = [
        isOwn && remove('remove', `remove ${image}`, image, removeImage(image)),
        hasFiles && remove('files', `remove ${parcel}`, parcel, forgetImage(parcel, host)),
      ]
      return steps('differs', all, otherwise)
    })
    return [operation('container', host, 'container', container), operation('image', host, 'image', images)]
  })
}
