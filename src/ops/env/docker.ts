/** Docker environments: the image and the container as the daemon of a host describes them, and the scripts that make them. One daemon builds or pulls an image, the others load it from a file; one container each. */
import { createHash } from 'node:crypto'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from '../kernel/fact.ts'
import { pathWord } from '../kernel/files.ts'
import type { FileDelivery } from '../kernel/host-port.ts'
import type { Action, Check } from '../kernel/operation.ts'
import { type ParcelFacts, removeParcel } from './facts.ts'
import { IMAGE_PROGRAM, savedNamesOf } from './image-file.ts'

export type DockerImage = {
  /** `sha256:…`; it depends on how this daemon stores images. */
  readonly id: string
  /** Of the uncompressed layers (RootFS), which are the same wherever the image was loaded. */
  readonly layers: readonly string[]
  /** A hash of the layers and of the settings that matter at run time: equal images have equal ones. */
  readonly digest: string
  readonly architecture: string
  readonly labels: Readonly<Record<string, string>>
}

export type DockerContainer = {
  /** `running`, `exited`, `created`, `restarting`, `paused`, `dead`. */
  readonly state: string
  readonly imageId: string
  readonly labels: Readonly<Record<string, string>>
}

export type DockerFacts = {
  /** Why the daemon cannot be used; the rest is undefined then. */
  readonly trouble?: string
  readonly image: DockerImage | undefined
  readonly container?: DockerContainer
}

const IMAGE =
  '{"id":{{json .Id}},"layers":{{json .RootFS.Layers}},"architecture":{{json .Architecture}},"config":{{json .Config}}}'
const CONTAINER = '{"state":{{json .State.Status}},"imageId":{{json .Image}},"labels":{{json .Config.Labels}}}'

export function dockerFact(image: string, container: string): Fact<DockerFacts> {
  return {
    // A daemon that hangs is asked only once.
    script: `command -v docker > /dev/null || { echo 'trouble docker is not installed'; return; }
dock() { limited docker "$@"; }
said=$(dock version --format '{{.Server.Version}}' 2>&1) || {
  status=$?
  overdue $status && { echo 'trouble the daemon does not answer'; return; }
  case $said in *'permission denied'*) dock() { limited sudo -n docker "$@"; };; esac
  said=$(dock version --format '{{.Server.Version}}' 2>&1) ||
    { echo "trouble $(printf '%s' "$said" | tail -n 1 | head -c 300)"; return; }
}
echo "server $said"
# Absent is only what the daemon says is absent: another container of this name could be the user's.
ask() {
  said=$(dock "$1" inspect --format "$2" "$3") && { echo "$1 $said"; return 0; }
  why=$(dock "$1" inspect --format "$2" "$3" 2>&1 > /dev/null)
  status=$?
  ! overdue $status || why='it does not answer'
  [ $status != 0 ] || why='it has failed once'
  case $why in *[Nn]'o such '* | *'not known'*) return 0;; esac
  echo "trouble docker $1 inspect: $(printf '%s' "$why" | tail -n 1 | head -c 300)"
  return 1
}
ask image ${shellQuote(IMAGE)} ${shellQuote(image)} && ask container ${shellQuote(CONTAINER)} ${shellQuote(container)}
:`,
    parse(text) {
      const said = new Map(text.split('\n').map((line) => [line.split(' ', 1)[0], line.slice(line.indexOf(' ') + 1)]))
      const trouble = said.get('trouble')
      if (trouble !== undefined) return { trouble, image: undefined }
      if (!said.has('server')) return undefined
      const [imageText, containerText] = [said.get('image'), said.get('container')]
      const own = containerText === undefined ? undefined : containerOf(JSON.parse(containerText))
      return {
        image: imageText === undefined ? undefined : imageOf(JSON.parse(imageText)),
        ...(own === undefined ? {} : { container: own }),
      }
    },
  }
}

/** The settings of an image that decide how its container runs. */
const CONFIG_KEYS = ['Env', 'Entrypoint', 'Cmd', 'WorkingDir', 'User', 'Volumes', 'StopSignal', 'Shell'] as const

function imageOf({ id, layers, architecture, config }: Record<string, unknown>): DockerImage {
  const texts = Array.isArray(layers) ? layers.map(String) : []
  const settings = (config ?? {}) as Record<string, unknown>
  const matters = CONFIG_KEYS.map((key) => settings[key] || null)
  const digest = createHash('sha256')
    .update(JSON.stringify([texts, matters, architecture]))
    .digest('hex')
  return {
    id: String(id),
    layers: texts,
    digest,
    architecture: String(architecture),
    labels: labelsOf(settings.Labels),
  }
}

function containerOf({ state, imageId, labels }: Record<string, unknown>): DockerContainer {
  return { state: String(state), imageId: String(imageId), labels: labelsOf(labels) }
}

function labelsOf(labels: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(labels ?? {}).map(([key, value]) => [key, String(value)]))
}

const BUILD_TIMEOUT_MS = 120 * 60_000
const MOVE_TIMEOUT_MS = 60 * 60_000
const STOP_S = 20

/** Labels of images that Muster built (the source) and of its containers (image and settings). */
export const SOURCE_LABEL = 'muster.source'
export const CONTAINER_LABEL = 'muster.container'

/** `dock`: docker, through passwordless sudo if the login may not use it. */
export const DOCK = `dock() { docker "$@"; }
case $(docker version --format '{{.Server.Version}}' 2>&1) in *'permission denied'*) dock() { sudo -n docker "$@"; };; esac
`

export type Building = {
  readonly image: string
  readonly source: string
  readonly dockerfile: string
  readonly context: FileDelivery
  readonly parcel: string
  readonly host: string
  /** Takes no layers from earlier builds: the image that is there is of another host, and may claim to be one. */
  readonly isAnew: boolean
}

/** Copies the build context from this machine, builds, and removes the context. */
export function buildImage({ image, source, dockerfile, context, parcel, host, isAnew }: Building): Action {
  const words = ['--tag', image, '--label', `${SOURCE_LABEL}=${source}`, '--file', dockerfile]
  const options = [...words, ...(isAnew ? ['--no-cache'] : [])].map(shellQuote).join(' ')
  return {
    files: context,
    script: `${DOCK}d=${pathWord(context.to)}
cd "$d" || exit 1
dock build ${options} . || exit 1
cd ${pathWord(parcel)} && rm -f ${LOADING}-${host} && { [ ! -f ${LOADED}-${host} ] || echo ${shellQuote(host)} > ${LOADED}-${host}; } || exit 1
cd "$HOME" && rm -rf "$d" && rmdir "\${d%/*}" && rmdir -p .cache/muster/env 2> /dev/null
:`,
    timeoutMs: BUILD_TIMEOUT_MS,
  }
}

/** The file of the image in the parcel. */
const FILE = 'image.tar'

/**
 * Each host notes in its own file that Muster loaded its image, because hosts may share a home. While an image is being loaded the
 * note has the other name, so that an interrupted run is noticed. The note says which host the image is of, and its id. One of earlier
 * versions is empty.
 */
export const LOADED = 'loaded'
export const LOADING = 'loading'
export const UNFINISHED = 'unfinished'

const OF = 'of '

/** `content`: this host's note, whose the image is (OF), and UNFINISHED if an interrupted run left anything else. */
export function imageParcelFact(parcel: string, host: string): Fact<ParcelFacts> {
  return {
    script: `d=${pathWord(parcel)}
files=$(limited ls -A "$d") || { overdue $? && return 124; echo none; return; }
# "content" was the note of earlier versions.
[ ! -f "$d/${LOADED}-${host}" ] && ! grep -q -s -x ${LOADED} "$d/content" || echo ${LOADED}
[ ! -f "$d/${LOADING}-${host}" ] || echo ${LOADING}
for f in "$d/${LOADED}-${host}" "$d/${LOADING}-${host}"; do [ ! -s "$f" ] || echo "${OF}$(head -c 400 "$f" | head -n 1)"; done
[ -z "$files" ] || printf '%s\\n' "$files" | grep -q -v -e '^${LOADED}-' -e '^${LOADING}-' -e '^content$' || grep -q -s -v -x ${LOADED} "$d/content" || { echo end; return; }
echo ${UNFINISHED}
echo end`,
    parse(text) {
      const lines = text.split('\n')
      if (lines.at(-1) !== 'end') return text === 'none' ? { isThere: false } : undefined
      const content = lines.slice(0, -1)
      return { isThere: content.length > 0, content }
    },
  }
}

/** The other host that an image of this one is of; undefined: none, or it is not known. */
export function bringerOf({ content = [] }: ParcelFacts, host: string, image: DockerImage): string | undefined {
  const notes = content.filter((line) => line.startsWith(OF)).map((line) => line.slice(OF.length).split(' '))
  return notes.find(([from, id = image.id]) => from !== host && id === image.id)?.[0]
}

/** Whether there is a note of an earlier version, which did not say whose the image is. */
export function isNoteSilent({ content = [] }: ParcelFacts): boolean {
  return content.includes(LOADED) && !content.some((line) => line.startsWith(OF))
}

export function pullImage(image: string, parcel: string, host: string): Action {
  return {
    script: `${DOCK}d=${pathWord(parcel)}
dock pull --quiet ${shellQuote(image)} && mkdir -p "$d" && rm -f "$d/${LOADING}-${host}" && echo ${shellQuote(host)} > "$d/${LOADED}-${host}"`,
    timeoutMs: BUILD_TIMEOUT_MS,
  }
}

/** Into the parcel, whole or not at all. */
export function saveImage(image: string, parcel: string): Action {
  return {
    script: `${DOCK}d=${pathWord(parcel)}
umask 077
# Written by the login: what root writes through sudo could not be fetched.
mkdir -p "$d" && rm -rf "$d/${FILE}"* && dock save ${shellQuote(image)} > "$d/${FILE}.part" || { rm -f "$d/${FILE}.part"; exit 1; }
mv -f "$d/${FILE}.part" "$d/${FILE}"`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

/** Copies the file to the parcel of a host; others that share its home load it from there. */
export function bringImage(parcel: string, from: string): Action {
  const file = `${parcel}/${FILE}`
  return { files: { from, path: file, kind: 'file', to: parcel }, script: `test -f ${pathWord(file)}` }
}

/** From the file in the parcel, which gives no other name a new image, whatever the other host wrote. */
export function loadImage(image: string, parcel: string, host: string, from: string): Action {
  const names = savedNamesOf(image).map(shellQuote).join(' ')
  return {
    script: `${DOCK}d=${pathWord(parcel)}
command -v python3 > /dev/null || { echo 'python3 is not installed, so an image of another host cannot be checked' >&2; exit 1; }
image_of() { python3 -I -c ${shellQuote(IMAGE_PROGRAM)} "$d/${FILE}" ${shellQuote(from)} "$1" ${names}; }
image_of check || exit 1
echo ${shellQuote(from)} > "$d/${LOADING}-${host}" || exit 1
failed=$({ { image_of print || echo failed >&3; } | dock load --quiet >&2 || echo failed >&3; } 3>&1)
[ -z "$failed" ] || exit 1
id=$(dock image inspect --format '{{.Id}}' ${shellQuote(image)}) || exit 1
echo ${shellQuote(from)}" $id" > "$d/${LOADING}-${host}" && mv -f "$d/${LOADING}-${host}" "$d/${LOADED}-${host}"`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

/** For an image that was loaded by a run that was interrupted before it noted that. */
export function noteLoaded(parcel: string, host: string): Action {
  return { script: `cd ${pathWord(parcel)} && mv -f ${LOADING}-${host} ${LOADED}-${host}` }
}

/** Removes the file as soon as it is not needed, because images are large, and what interrupted runs left. */
export function removeImageFile(parcel: string): Action {
  return {
    script: `d=${pathWord(parcel)}
${REMOVE_FILE}
[ -n "$(ls -A "$d")" ] || {
${removeParcel(parcel)}
}`,
  }
}

const REMOVE_FILE = `rm -rf "$d"/${FILE}* "$d/context"
if grep -q -s -x ${LOADED} "$d/content"; then echo ${LOADED} > "$d/content"; else rm -f "$d/content"; fi`

/** Removes this host's note; those of hosts that share its home stay. */
export function forgetImage(parcel: string, host: string): Action {
  return {
    script: `d=${pathWord(parcel)}
${REMOVE_FILE}
rm -f "$d/${LOADED}-${host}" "$d/${LOADING}-${host}" "$d/content"
ls "$d" | grep -q -e '^${LOADED}-' -e '^${LOADING}-' || {
${removeParcel(parcel)}
}`,
  }
}

export type Container = {
  readonly name: string
  readonly image: string
  readonly restart: string
  readonly options: string
  readonly command: readonly string[]
  /** What the label says. */
  readonly mark: string
}

/** Stops and removes the container "$p", if Muster made it; fails if another one has the name. */
export const CONTAINER_REMOVE = `${DOCK}case $(dock container inspect --format '{{index .Config.Labels "${CONTAINER_LABEL}"}}' "$p") in
  '' | '<no value>') echo "$p is no container that Muster created" >&2; false;;
  *) dock stop --time ${STOP_S} "$p" > /dev/null; dock rm --force "$p";;
esac`

/** Removes a container of another image or with other settings first. */
export function runContainer({ name, image, restart, options, command, mark }: Container): Action {
  const words = [
    ...['run', '--detach', '--name', name, '--restart', restart, '--label', `${CONTAINER_LABEL}=${mark}`],
    ...options.split(/\s+/).filter((word) => word !== ''),
    image,
    ...command,
  ]
  return {
    // Fails where the name is taken.
    script: `p=${shellQuote(name)}
{ ${CONTAINER_REMOVE}
} > /dev/null 2>&1
dock ${words.map(shellQuote).join(' ')} || exit 1
# What it replaces, as far as Muster built it.
dock image prune --force --filter dangling=true --filter label=${SOURCE_LABEL} > /dev/null || :`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

export function startContainer(name: string): Action {
  return { script: `${DOCK}dock start ${shellQuote(name)}` }
}

/** A check: the declared container runs, and still does a moment later. */
export function containerRuns({ name, image, mark }: Container): Check {
  const format = `{{.State.Running}} {{.State.Restarting}} {{index .Config.Labels "${CONTAINER_LABEL}"}} {{.Image}}`
  return {
    lack: 'its container does not run',
    script: `${DOCK}image=$(dock image inspect --format '{{.Id}}' ${shellQuote(image)}) || exit 1
for again in 1 2 3; do
  said=$(dock container inspect --format ${shellQuote(format)} ${shellQuote(name)} 2>&1)
  [ "$said" = "true false ${mark} $image" ] || { dock logs --tail 3 ${shellQuote(name)} >&2; echo "it does not run: $said" >&2; exit 1; }
  sleep 0.3
done`,
  }
}

/** For the name "$p". */
export const IMAGE_REMOVE = `${DOCK}dock image rm "$p"`

export function removeContainer(name: string): Action {
  return { script: `p=${shellQuote(name)}\n${CONTAINER_REMOVE}` }
}

export function removeImage(image: string): Action {
  return { script: `p=${shellQuote(image)}\n${IMAGE_REMOVE}` }
}
