/** The scripts for Docker environments: an image built or held by one daemon, carried to the others as a file, and one container. */
import { shellQuote } from '../../base/shell-quote.ts'
import { pathWord } from '../kernel/files.ts'
import type { Delivery } from '../kernel/host-port.ts'
import type { Action, Check } from '../kernel/operation.ts'
import { removeParcel } from './parcel.ts'

const BUILD_TIMEOUT_MS = 120 * 60_000
const MOVE_TIMEOUT_MS = 60 * 60_000
const STOP_S = 20

/** On images that Muster built: of what. On containers: of which image and which settings. */
export const SOURCE_LABEL = 'muster.source'
export const CONTAINER_LABEL = 'muster.container'

/** `dock`: docker as the login may use it, or through sudo where that asks for no password. */
export const DOCK = `dock() { docker "$@"; }
case $(docker version --format '{{.Server.Version}}' 2>&1) in *'permission denied'*) dock() { sudo -n docker "$@"; };; esac
`

/** From a directory of this machine; the context is carried to the host and removed there when the image stands. */
export function buildImage(image: string, source: string, dockerfile: string, context: Delivery): Action {
  const options = ['--tag', image, '--label', `${SOURCE_LABEL}=${source}`, '--file', dockerfile]
    .map(shellQuote)
    .join(' ')
  return {
    files: context,
    script: `${DOCK}d=${pathWord(context.to)}
cd "$d" || exit 1
dock build ${options} . || exit 1
cd "$HOME" && rm -rf "$d" && rmdir "\${d%/*}" && rmdir -p .cache/muster/env 2> /dev/null
:`,
    timeoutMs: BUILD_TIMEOUT_MS,
  }
}

/** In the parcel: what it holds. */
export const IMAGE_CONTENT = 'content'
/** Noted there: the image came through Muster. */
export const LOADED = 'loaded'
const CARRIED = 'image # image.tar'

export function pullImage(image: string, parcel: string): Action {
  return {
    script: `${DOCK}d=${pathWord(parcel)}
dock pull --quiet ${shellQuote(image)} && mkdir -p "$d" && echo ${LOADED} > "$d/${IMAGE_CONTENT}"`,
    timeoutMs: BUILD_TIMEOUT_MS,
  }
}

/** Into the parcel, whole or not at all. */
export function saveImage(image: string, parcel: string): Action {
  return {
    script: `${DOCK}d=${pathWord(parcel)}
umask 077
# Written by the login: what root writes through sudo could not be fetched.
mkdir -p "$d" && dock save ${shellQuote(image)} > "$d/image.tar.part" || { rm -f "$d/image.tar.part"; exit 1; }
mv -f "$d/image.tar.part" "$d/image.tar" || exit 1
{ grep -x ${LOADED} "$d/${IMAGE_CONTENT}" 2> /dev/null; echo '${CARRIED}'; } > "$d/${IMAGE_CONTENT}.new"
mv -f "$d/${IMAGE_CONTENT}.new" "$d/${IMAGE_CONTENT}"`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

/** The file has done its work then: images are large. */
export function loadImage(parcel: string, from: string): Action {
  return {
    files: { from, path: parcel, to: parcel },
    script: `${DOCK}d=${pathWord(parcel)}
dock load --quiet < "$d/image.tar" && echo ${LOADED} > "$d/${IMAGE_CONTENT}" && rm -f "$d/image.tar"`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

/** It was loaded, and what came after that was cut. */
export function finishLoad(parcel: string): Action {
  return {
    script: `d=${pathWord(parcel)}
rm -f "$d"/image.tar*
if [ -s "$d/${IMAGE_CONTENT}" ]; then echo ${LOADED} > "$d/${IMAGE_CONTENT}"; else
${removeParcel(parcel)}
fi`,
  }
}

export function removeSavedImage(parcel: string): Action {
  return {
    script: `d=${pathWord(parcel)}
rm -rf "$d"/image.tar* "$d/context"
if grep -q -s -x ${LOADED} "$d/${IMAGE_CONTENT}"; then echo ${LOADED} > "$d/${IMAGE_CONTENT}"; else
${removeParcel(parcel)}
fi`,
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

/** A container of another image, or with other settings, makes room first. */
export function runContainer({ name, image, restart, options, command, mark }: Container): Action {
  const words = [
    ...['run', '--detach', '--name', name, '--restart', restart, '--label', `${CONTAINER_LABEL}=${mark}`],
    ...options.split(/\s+/).filter((word) => word !== ''),
    image,
    ...command,
  ]
  return {
    script: `${DOCK}dock stop --time ${STOP_S} ${shellQuote(name)} > /dev/null 2>&1; dock rm --force ${shellQuote(name)} > /dev/null 2>&1
dock ${words.map(shellQuote).join(' ')} || exit 1
# What it replaces, as far as Muster built it.
dock image prune --force --filter dangling=true --filter label=${SOURCE_LABEL} > /dev/null || :`,
    timeoutMs: MOVE_TIMEOUT_MS,
  }
}

export function startContainer(name: string): Action {
  return { script: `${DOCK}dock start ${shellQuote(name)}` }
}

/** It is the one that is wanted, it runs, and goes on running for a moment. */
export function containerRuns({ name, image, mark }: Container): Check {
  const format = `{{.State.Running}} {{.State.Restarting}} {{index .Config.Labels "${CONTAINER_LABEL}"}} {{.Image}}`
  return {
    script: `${DOCK}image=$(dock image inspect --format '{{.Id}}' ${shellQuote(image)}) || exit 1
for again in 1 2 3; do
  said=$(dock container inspect --format ${shellQuote(format)} ${shellQuote(name)} 2>&1)
  [ "$said" = "true false ${mark} $image" ] || { dock logs --tail 3 ${shellQuote(name)} >&2; echo "it does not run: $said" >&2; exit 1; }
  sleep 0.3
done`,
  }
}

/** Both for the name "$p". */
export const CONTAINER_REMOVE = `${DOCK}dock stop --time ${STOP_S} "$p" > /dev/null; dock rm --force "$p"`
export const IMAGE_REMOVE = `${DOCK}dock image rm "$p"`

export function removeContainer(name: string): Action {
  return { script: `p=${shellQuote(name)}\n${CONTAINER_REMOVE}` }
}

export function removeImage(image: string): Action {
  return { script: `p=${shellQuote(image)}\n${IMAGE_REMOVE}` }
}
