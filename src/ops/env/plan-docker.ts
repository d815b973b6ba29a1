/** What env would do about an image and its container on each host. Pure. */
import { createHash } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { type Known, knownValue } from '../kernel/fact.ts'
import { ifKnown, type Operation, operationId, type Verdict } from '../kernel/operation.ts'
import {
  bringImage,
  buildImage,
  CONTAINER_LABEL,
  type Container,
  containerRuns,
  type DockerFacts,
  type DockerImage,
  forgetImage,
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
import {
  blocked,
  type EnvAreaFacts,
  keptElsewhere,
  nothing,
  type OwnFacts,
  oneStep,
  operation,
  step,
  steps,
} from './plan.ts'
import { AREA, type EnvWanted, parcelOf } from './wanted.ts'

type Wanted = EnvWanted<'docker'>

const short = (image: DockerImage) => image.digest.slice(0, 12)

/** Blocked if the daemon cannot be used. */
function onDocker(host: string, own: OwnFacts, decide: (facts: DockerFacts) => Verdict): Verdict {
  return ifKnown(host, 'Docker', own.content as Known<DockerFacts>, (facts) =>
    facts.trouble === undefined ? decide(facts) : blocked(host, 'no-docker', `Docker: ${facts.trouble}`),
  )
}

export function planDockerUp(wanted: Wanted, areaFacts: EnvAreaFacts): Operation[] {
  const { facts } = areaFacts
  const { spec } = wanted
  const source = facts.get(spec.from)?.facts
  const made = source === undefined ? undefined : makeImage(wanted, source)
  // The image that the others should have; undefined until it is made.
  const followed = made?.verdict.kind === 'nothing' ? imageOf(source) : undefined
  const elsewhere = keptElsewhere('up', wanted, areaFacts, 'parcel')
  const keeperOf = (host: string) => elsewhere.get(host)?.keeper ?? host
  const loads = [...facts]
    .filter(([host]) => host !== spec.from)
    .map(([host, { facts: own }]) => takeImage(wanted, host, own, source === undefined, followed, keeperOf(host)))
  const isCarried = loads.some(({ verdict }) => verdict.kind === 'steps')
  const containers = [...facts].map(([host, { facts: own }]) => {
    const isImageThere = [made, ...loads].some((each) => each?.host === host && each.verdict.kind === 'nothing')
    return holdContainer(wanted, host, own, isImageThere)
  })
  return [
    ...(made === undefined ? [] : [made]),
    ...(isCarried ? [packImage(wanted)] : []),
    ...bringImages(wanted, loads, keeperOf),
    ...loads,
    ...containers,
    // Last: a host stops at its first failure.
    ...tidy(wanted, areaFacts, loads, keeperOf),
  ]
}

function imageOf(own: OwnFacts | undefined): DockerImage | undefined {
  return own === undefined ? undefined : knownValue(own.content as Known<DockerFacts>)?.image
}

/** On the followed host: build or pull the image, or keep it. */
function makeImage(wanted: Wanted, source: OwnFacts): Operation {
  const { spec, file, key } = wanted
  const { from: host, image } = spec
  const verdict = onDocker(host, source, ({ image: there }) => {
    if (file?.kind !== 'text') {
      if (there !== undefined) return nothing(`${image} is there (${short(there)})`)
      const pull = { title: `pull ${image}`, changes: [`+ ${image}`], run: pullImage(image, parcelOf(wanted), host) }
      return oneStep('missing', 'image', host, 'pull', pull)
    }
    if (there?.labels[SOURCE_LABEL] === key) return nothing(`${image} is built from ${file.path} (${short(there)})`)
    const context = { from: undefined, path: dirname(file.path), to: `${parcelOf(wanted)}/context` }
    const build = {
      title: `build ${image} from ${file.path}`,
      changes: [`${there === undefined ? '+' : '~'} ${image}`],
      run: buildImage(image, key, basename(file.path), context),
    }
    return oneStep(there === undefined ? 'missing' : 'differs', 'image', host, 'build', build)
  })
  return operation('image', host, 'image', verdict)
}

function packImage(wanted: Wanted): Operation {
  const { from: host, image } = wanted.spec
  const parcel = parcelOf(wanted)
  const pack = {
    title: `write ${image} to a file for the others`,
    changes: [`+ ${parcel}`],
    run: saveImage(image, parcel),
  }
  const after = [operationId(AREA, 'image', host)]
  return operation('file', host, 'image as a file', oneStep('missing', 'file', host, 'save', pack), after)
}

/** Copies the file to each home where an image will be loaded, except the followed host's. */
function bringImages(
  wanted: Wanted,
  loads: readonly Operation[],
  keeperOf: (host: string) => string,
): readonly Operation[] {
  const { from, image } = wanted.spec
  const parcel = parcelOf(wanted)
  const keepers = new Set(loads.filter(({ verdict }) => verdict.kind === 'steps').map(({ host }) => keeperOf(host)))
  keepers.delete(from)
  return [...keepers].map((host) => {
    const bring = { title: `bring ${image} from ${from}`, changes: [`+ ${parcel}`], run: bringImage(parcel, from) }
    const verdict = oneStep('missing', 'file', host, 'bring', bring)
    return operation('file', host, 'image as a file', verdict, [operationId(AREA, 'file', from)])
  })
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
      if (there !== undefined)
        return nothing(`${image} is there (${short(there)}); ${from}, which it follows, cannot be reached`)
      return blocked(host, 'not-reached', `${from}, which has the image, cannot be reached`)
    }
    if (there !== undefined && there.digest === followed?.digest)
      return nothing(`${image} is the one of ${from} (${short(there)})`)
    const load = {
      title: `load ${image} from ${from}`,
      changes: [`${there === undefined ? '+' : '~'} ${image}`],
      run: loadImage(parcelOf(wanted), host),
    }
    return oneStep(there === undefined ? 'missing' : 'differs', 'image', host, 'load', load)
  })
  return operation('image', host, 'image', verdict, isSourceAway ? [] : [operationId(AREA, 'file', keeper)])
}

function hasNote(own: OwnFacts, note: string): boolean {
  return knownValue(own.parcel)?.content?.includes(note) === true
}

/** Removes the file from each home once all its hosts have loaded it, also one that an interrupted run left. */
function tidy(
  wanted: Wanted,
  { facts }: EnvAreaFacts,
  loads: readonly Operation[],
  keeperOf: (host: string) => string,
): readonly Operation[] {
  const parcel = parcelOf(wanted)
  const { from } = wanted.spec
  const isCarried = loads.some(({ verdict }) => verdict.kind === 'steps')
  return [...facts].flatMap(([host, { facts: own }]) => {
    const ownLoads = loads.filter((load) => keeperOf(load.host) === host)
    const isLoaded = loads.some((load) => load.host === host && load.verdict.kind === 'nothing')
    const isUsed = host === from ? isCarried : ownLoads.some(({ verdict }) => verdict.kind === 'steps')
    const removal = { title: 'remove the file of the image', changes: [`- ${parcel}`], run: removeImageFile(parcel) }
    const note = { title: 'note that Muster loaded the image', changes: [], run: noteLoaded(parcel, host) }
    const all = [
      ...(isLoaded && hasNote(own, LOADING) ? [step('tidy', host, 'note', note)] : []),
      ...(keeperOf(host) === host && (isUsed || hasNote(own, UNFINISHED))
        ? [step('tidy', host, 'remove', removal)]
        : []),
    ]
    const after = (host === from ? loads : ownLoads).map(({ id }) => id)
    return all.length === 0 ? [] : [operation('tidy', host, 'image as a file', steps('differs', all), after)]
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
    const run = (change: '+' | '~', why: string) =>
      step('container', host, 'run', {
        title: `run ${name}${why}`,
        changes: [`${change} container ${name} of ${image}`],
        run: runContainer(container),
        check: containerRuns(container),
      })
    if (there === undefined) return steps('missing', [run('+', '')])
    const own = there.labels[CONTAINER_LABEL]
    if (own === undefined) {
      const hint = `Remove it (docker rm ${name}), or choose another name in hosts.yaml.`
      return blocked(host, 'in-the-way', `a container ${name} exists that Muster did not create`, hint)
    }
    if (!isImageThere || there.imageId !== present?.id)
      return steps('differs', [run('~', ' again: its image has changed')])
    if (own !== mark) return steps('differs', [run('~', ' again: its settings in hosts.yaml have changed')])
    if (there.state === 'running') return nothing(`the container ${name} runs`)
    const start = {
      title: `start ${name}, which is ${there.state}`,
      changes: [`~ container ${name}`],
      run: startContainer(name),
      check: containerRuns(container),
    }
    return oneStep('differs', 'container', host, 'start', start)
  })
  return operation('container', host, 'container', verdict, [operationId(AREA, 'image', host)])
}

export function planDockerDown(wanted: Wanted, { facts }: EnvAreaFacts): Operation[] {
  const { name, image } = wanted.spec
  const parcel = parcelOf(wanted)
  return [...facts].flatMap(([host, { facts: own }]) => [
    operation(
      'container',
      host,
      'container',
      onDocker(host, own, ({ container }) => {
        if (container === undefined) return nothing(`there is no container ${name}`)
        if (container.labels[CONTAINER_LABEL] === undefined)
          return nothing(`the container ${name} was not created by Muster: it stays`)
        const title = `stop and remove ${name}`
        const remove = { title, changes: [`- container ${name}`], run: removeContainer(name) }
        return oneStep('differs', 'container', host, 'remove', remove)
      }),
    ),
    operation(
      'image',
      host,
      'image',
      onDocker(host, own, ({ image: there }) => {
        const isOwn = there !== undefined && (hasNote(own, LOADED) || there.labels[SOURCE_LABEL] !== undefined)
        const remove = { title: `remove ${image}`, changes: [`- ${image}`], run: removeImage(image) }
        const removeFiles = { title: `remove ${parcel}`, changes: [`- ${parcel}`], run: forgetImage(parcel, host) }
        const all = [
          ...(isOwn ? [step('image', host, 'remove', remove)] : []),
          ...(knownValue(own.parcel)?.isThere === true ? [step('image', host, 'files', removeFiles)] : []),
        ]
        if (all.length > 0) return steps('differs', all)
        return nothing(
          there === undefined ? `there is no image ${image}` : `${image} was not brought by Muster: it stays`,
        )
      }),
    ),
  ])
}
