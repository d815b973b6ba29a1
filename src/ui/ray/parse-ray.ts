/** Parses lines of the palette: `ray submit --cpus 2 python train.py`, `ray up`, `ray logs ID`. Pure. */
import { OPEN_QUOTE, takeWord } from '../work-views/parse-work.ts'
import type { RayCommand } from './ray-port.ts'

export type RayRequest =
  /** `target`: a host set; undefined: all declared hosts. */
  | { readonly kind: 'area'; readonly do: 'status' | 'up' | 'down'; readonly target: string | undefined }
  | { readonly kind: 'watch' }
  | { readonly kind: 'jobs'; readonly order: RayCommand }

export type ParsedRay = RayRequest | { readonly error: string }

export const RAY_VERBS = ['status', 'up', 'down', 'watch', 'submit', 'jobs', 'logs', 'stop'] as const

/** Undefined: not a line for Ray. */
export function parseRayLine(line: string): ParsedRay | undefined {
  const match = /^\s*:?ray(?<rest>\s.*)?$/s.exec(line)
  return match === null ? undefined : parseRay(match.groups?.rest ?? '')
}

function parseRay(text: string): ParsedRay {
  const first = takeWord(text)
  if (first === undefined || first === 'open') return { error: `ray ${RAY_VERBS.join(', ')}` }
  const verb = RAY_VERBS.find((known) => known === first.word)
  switch (verb) {
    case undefined:
      return { error: `unknown: ray ${first.word}. Use ${RAY_VERBS.join(', ')}` }
    case 'status':
    case 'up':
    case 'down':
      return parseArea(verb, first.rest)
    case 'watch':
    case 'jobs':
      if (first.rest.trim() !== '') return { error: `ray ${verb} takes no arguments` }
      return verb === 'watch' ? { kind: 'watch' } : { kind: 'jobs', order: { do: 'list' } }
    case 'logs':
    case 'stop':
      return parseId(verb, first.rest)
    case 'submit':
      return parseSubmit(first.rest)
  }
}

function parseArea(verb: 'status' | 'up' | 'down', rest: string): ParsedRay {
  const target = /^\s*(?:on\s+(?<target>\S.*))?$/s.exec(rest)
  if (target === null) return { error: `type ray ${verb} or ray ${verb} on HOSTS` }
  return { kind: 'area', do: verb, target: target.groups?.target?.trim() }
}

const JOB_ID = /^[\w.-]{1,200}$/

function parseId(verb: 'logs' | 'stop', rest: string): ParsedRay {
  const id = rest.replace(/^\s*-f\s/, '').trim()
  if (!JOB_ID.test(id)) return { error: `type ray ${verb} ID; ray jobs lists them` }
  return { kind: 'jobs', order: verb === 'stop' ? { do: 'stop', id } : { do: 'logs', id, follow: true } }
}

type Options = {
  id?: string
  cpus?: number
  gpus?: number
  directory?: string
  readonly environment: Record<string, string>
  readonly resources: Record<string, number>
}

/** The options of `muster ray submit`, then the command line of the job, unchanged. */
function parseSubmit(text: string): ParsedRay {
  const options: Options = { environment: {}, resources: {} }
  let rest = text
  let follow = true
  for (;;) {
    const next = takeWord(rest)
    if (next === 'open') return { error: OPEN_QUOTE }
    if (next === undefined || !next.word.startsWith('-')) break
    rest = next.rest
    if (next.word === '--') break
    if (next.word === '--no-wait') {
      follow = false
      continue
    }
    const [, name = '', given] = /^--([a-z-]+)(?:=(.*))?$/s.exec(next.word) ?? []
    const value = given === undefined ? takeWord(rest) : { word: given, rest }
    if (value === 'open') return { error: OPEN_QUOTE }
    if (value === undefined) return { error: `${next.word} needs a value` }
    rest = value.rest
    const wrong = setOption(options, name, value.word)
    if (wrong !== undefined) return { error: wrong }
  }
  const entrypoint = rest.trim()
  if (entrypoint === '') return { error: 'missing command: ray submit python train.py' }
  const { directory, resources, ...job } = options
  const spec = { ...job, entrypoint, ...(Object.keys(resources).length === 0 ? {} : { resources }) }
  return { kind: 'jobs', order: { do: 'submit', job: spec, directory, follow } }
}

/** Returns what is wrong. */
function setOption(options: Options, name: string, value: string): string | undefined {
  const at = value.indexOf('=')
  const [key, part] = [value.slice(0, at), value.slice(at + 1)]
  switch (name) {
    case 'id':
      options.id = value
      return JOB_ID.test(value) ? undefined : '--id may have only letters, digits, _ . and -'
    case 'working-dir':
      options.directory = value
      return undefined
    case 'cpus':
    case 'gpus':
      options[name] = Number(value)
      return isAmount(value) ? undefined : `--${name} must be a number, 0 or more`
    case 'env':
      options.environment[key] = part
      return /^[A-Za-z_]\w*$/.test(key) ? undefined : '--env must be NAME=VALUE'
    case 'resources':
      options.resources[key] = Number(part)
      return at > 0 && isAmount(part) ? undefined : '--resources must be NAME=AMOUNT'
    default:
      return 'options: --env, --cpus, --gpus, --resources, --working-dir, --id and --no-wait'
  }
}

const isAmount = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text)) && Number(text) >= 0
