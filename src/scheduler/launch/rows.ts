/**
 * Launchers that are only words and variables: rows of `launchers` in hosts.yaml. A job keeps the row that it was submitted with,
 * so a file that changes later changes no job.
 */
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { defineSection } from '../../inventory/hosts-yaml-schema.ts'
import { choice, list, mapOf, object, text, wholeNumber } from '../../inventory/yaml-reader.ts'
import { askCard, askPorts, askProgram, formatQuestion, nextQuestion, portsOf } from './asking.ts'
import { HOST_ROLE, type LaunchedGang, type Launcher, type LauncherRow, type LaunchSpec } from './launcher.ts'
import { beginOf, cardsOf } from './torchrun.ts'

const MOST_PORTS = 16

/** What a word may name. `address.0`: of the first bundle. */
const PLACEHOLDERS: Readonly<Record<string, (gang: LaunchedGang, bundle: number) => string | undefined>> = {
  job: ({ id }) => id,
  nodes: ({ bundles }) => String(bundles.length),
  node: (_, bundle) => String(bundle),
  procs: ({ spec, bundles }, bundle) => String(procsOf(spec.options, bundles[bundle]?.request.gpuCount ?? 0)),
  ranks: ({ spec, bundles }) =>
    String(bundles.reduce((sum, { request }) => sum + procsOf(spec.options, request.gpuCount), 0)),
  host: ({ bundles }, bundle) => bundles[bundle]?.host,
  address: ({ bundles }, bundle) => bundles[bundle]?.address,
  'address.0': ({ bundles }) => bundles[0]?.address,
  hosts: ({ bundles }) => bundles.map(({ host }) => host).join(),
  addresses: ({ bundles }) => bundles.map(({ address }) => address).join(),
  ...Object.fromEntries(
    Array.from({ length: MOST_PORTS }, (_, index) => [
      `port.${index}`,
      ({ bundles }: LaunchedGang) => portsOf(bundles[0]?.said)[index]?.toString(),
    ]),
  ),
}

const procsOf = ({ procs }: LaunchSpec['options'], gpus: number): number => Number(procs ?? Math.max(1, gpus))

const namesIn = (word: string): readonly string[] => [...word.matchAll(/\{([^{}]*)\}/g)].map(([, name = '']) => name)

const word = text('word', (value) => {
  if (value === '{command}') return undefined
  const wrong = namesIn(value).find((name) => !Object.hasOwn(PLACEHOLDERS, name))
  if (wrong === undefined) return undefined
  if (wrong === 'command') return 'has {command} inside a word; it has to be a word of its own'
  const known = [
    'nodes',
    'node',
    'ranks',
    'procs',
    'host',
    'address',
    'address.0',
    'hosts',
    'addresses',
    'port.0',
    'job',
  ]
  return `has {${printable(wrong)}}; known are ${known.map((name) => `{${name}}`).join(' ')} {command}`
})
const words = list(word)

/** Names of Muster's own launchers, and words that follow `muster launch`. */
const RESERVED: readonly string[] = ['mpi', 'horovod', 'torchrun', 'tf', 'vllm', 'ditask', 'check']

export const section = defineSection(
  'launchers',
  {
    schema: mapOf(
      object({
        command: {
          schema: words,
          about:
            'The words that start a bundle. `{nodes}` (bundles), `{node}` (from 0), `{ranks}`, `{procs}`, `{host}`, `{address}`, `{address.0}` (of the first bundle), `{hosts}`, `{addresses}`, `{port.0}` (free on the first host) and `{job}` are replaced. The command of the job follows, unless `{command}` stands in `command` or `first`.',
          example: '[accelerate, launch, --num_machines, "{nodes}"]',
          fallback: 'the command of the job alone',
        },
        first: { schema: words, about: 'The words for the first bundle.', fallback: '`command`' },
        per: {
          schema: choice(['bundle', 'host'] as const),
          about: '`host`: never two bundles on one host.',
          fallback: '`bundle`',
        },
        ports: {
          schema: wholeNumber(`a whole number from 0 to ${MOST_PORTS}`, { minimum: 0, maximum: MOST_PORTS }),
          about: 'How many free TCP ports it needs on the first host: `{port.0}`, `{port.1}` and so on.',
          example: '2',
          fallback: '1',
        },
        env: {
          schema: mapOf(word),
          about: 'Variables of the command, with the same replacements.',
          example: '{ JAX_PROCESS_ID: "{node}" }',
        },
        done: {
          schema: choice(['all', 'first'] as const),
          about: 'When the job is done: when all bundles are, or when the first one is; the others are stopped then.',
          fallback: '`all`',
        },
      }),
    ),
    about: 'Launchers of your own, for `muster launch NAME`.',
  },
  (raw, context): ReadonlyMap<string, LauncherRow> => {
    const rows = raw.map(
      ({ key, keyNode, value: { command = [], first, per = 'bundle', ports = 1, env = [], done = 'all' } }) => {
        const fail = (message: string) =>
          context.fail(keyNode.range?.[0] ?? 0, `launchers: ${printable(key)} ${message}`)
        if (!/^[a-z][a-z0-9-]{0,30}$/.test(key)) fail('is not a name of small letters, digits and -')
        if (RESERVED.includes(key)) fail('is a launcher of Muster; give yours another name')
        const variable = env.find(({ key: name }) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
        if (variable !== undefined) fail(`sets ${printable(variable.key)}, which is not the name of a variable`)
        const used = [...command, ...(first ?? []), ...env.map(({ value }) => value)].flatMap(namesIn)
        const port = used.find((name) => name.startsWith('port.') && Number(name.slice('port.'.length)) >= ports)
        if (port !== undefined) fail(`uses {${port}}; write ports: ${Number(port.slice('port.'.length)) + 1}`)
        const environment = Object.fromEntries(env.map(({ key: name, value }) => [name, value]))
        return [key, { command, ...(first === undefined ? {} : { first }), per, ports, environment, done }] as const
      },
    )
    return new Map(rows)
  },
)

/** The words that start a bundle, with `{command}` where the command stands. */
function wordsOf({ command, first }: LauncherRow, bundle: number): readonly string[] {
  const words = (bundle === 0 ? first : undefined) ?? command
  if (words.length === 0) return ['{command}']
  return [...command, ...(first ?? [])].includes('{command}') ? words : [...words, '{command}']
}

export function rowLauncher(name: string, row: LauncherRow): Launcher {
  return {
    name,
    summary: `${[...row.command, 'COMMAND'].slice(0, 4).join(' ')} … (launchers in hosts.yaml)`,
    options: [
      {
        flags: 'procs <n>',
        summary: 'start N ranks in each bundle (default: its GPUs, else 1)',
        values: /^[1-9]\d{0,3}$/,
      },
    ],
    // Only the user knows whether it takes any program, or the script of another one.
    inserts: [0, 1].map((bundle) => wordsOf(row, bundle)).some((one) => one.length > 1 && one.includes('{command}'))
      ? {
          hint: "If the launcher starts any program, write: sh -c 'LINE'. If it takes a script, put the line into one.",
        }
      : undefined,
    shape: (_, bundles, request) => ({
      roles: [{ name: HOST_ROLE, count: bundles, request }],
      ...(row.done === 'first' ? { leaders: [0] } : {}),
      ...(row.per === 'host' ? { isOnePerHost: true } : {}),
    }),
    next(gang, bundle) {
      const words = wordsOf(row, bundle)
      const [program = ''] = words
      const question = (index: number) =>
        formatQuestion(
          ...(program === '' || program.includes('{') ? [] : [askProgram(program)]),
          askCard(gang.bundles[index]?.address ?? ''),
          ...(index === 0 && row.ports > 0 ? [askPorts(row.ports, gang.spec.ports, beginOf(gang))] : []),
        )
      const step = nextQuestion(gang, bundle, question)
      if (step !== undefined) return step
      const unknown = [...words, ...Object.values(row.environment)]
        .flatMap(namesIn)
        .find((one) => one !== 'command' && PLACEHOLDERS[one]?.(gang, bundle) === undefined)
      if (unknown !== undefined)
        return { kind: 'refuse', reason: `the launcher ${name} uses {${unknown}}, which is not known` }
      const fill = (text: string) =>
        text.replaceAll(/\{([^{}]*)\}/g, (_, one: string) => PLACEHOLDERS[one]?.(gang, bundle) ?? '')
      const line = words.map((one) => (one === '{command}' ? gang.command : shellQuote(fill(one)))).join(' ')
      const environment = Object.entries(row.environment).map(([key, value]) => [key, fill(value)] as const)
      return {
        kind: 'start',
        // A command by itself may be several: `exec` would run the first one alone.
        command: words.join() === '{command}' ? line : `exec ${line}`,
        environment: { ...cardsOf(gang.bundles[bundle]?.said ?? {}), ...Object.fromEntries(environment) },
      }
    },
  }
}
