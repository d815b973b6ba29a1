/** The image and the container of a Docker environment, as the daemon of a host describes them. */

import { createHash } from 'node:crypto'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from '../kernel/fact.ts'

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
said=$(dock image inspect --format ${shellQuote(IMAGE)} ${shellQuote(image)}) && echo "image $said"
said=$(dock container inspect --format ${shellQuote(CONTAINER)} ${shellQuote(container)}) && echo "container $said"
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
