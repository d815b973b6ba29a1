/** The keys of hosts.yaml that belong to no area, and the kinds of values that areas use too: for the parser and docs/hosts-yaml.md. */
import { isIPv4 } from 'node:net'
import { isScalar } from 'yaml'
import type { Host, TransportName } from './host.ts'
import { isUserName, parseHostSpec } from './host-name.ts'
import type { Inventory } from './inventory.ts'
import {
  choice,
  type Field,
  flag,
  type JsonSchema,
  type Located,
  located,
  mapOf,
  number,
  object,
  oneOrMore,
  orEmpty,
  type Schema,
  scalar,
  text,
  wholeNumber,
} from './yaml-reader.ts'

export interface SectionContext {
  readonly hosts: readonly Host[]
  /** The hosts of a set; an empty set is a problem. */
  expand(set: Located<string>): readonly string[]
  /** The same; absent: all hosts. */
  expandOrAll(set: Located<string> | undefined): readonly string[]
  /** The name; a problem if the file has no such host. */
  knownHost(name: Located<string>): string
  /** The value of another section of the file; undefined if it is absent. */
  other<T>(section: Section<T>): T | undefined
  /** Reports a problem; `offset`: where it is in the text. */
  fail(offset: number, message: string): void
}

export type Section<T = unknown> = {
  readonly key: string
  /** For the parser and for docs/hosts-yaml.md. */
  readonly field: Field
  /** A file with this section is of use without any host. */
  readonly needsNoHost?: boolean
  /** Undefined: nothing is declared. */
  resolve(raw: never, context: SectionContext): T | undefined
}

export function defineSection<Raw, T>(
  key: string,
  field: Field<Raw>,
  resolve: (raw: Raw, context: SectionContext) => T | undefined,
  options: Pick<Section, 'needsNoHost'> = {},
): Section<T> {
  return { key, field, resolve, ...options }
}

/** The value of a section of hosts.yaml; undefined if it is absent. */
export function sectionOf<T>({ sections }: Pick<Inventory, 'sections'>, { key }: Section<T>): T | undefined {
  // Only `resolve` of the same section puts a value under its key.
  return sections?.get(key) as T | undefined
}

const TRANSPORTS: readonly TransportName[] = ['ssh2', 'openssh', 'local']

export const hostSet = located(text('host set'))
export const hostName = located(text('host'))
export const ipAddress = text('IPv4 address', (value) => (isIPv4(value) ? undefined : 'is not an IPv4 address'))
/** Of this machine. */
export const path = text('path', [/^[^"]*$/, 'may not have a quote in it'])
export const port = wholeNumber('a port from 1 to 65535', { minimum: 1, maximum: 65_535 })
const count = wholeNumber('a whole number, 0 or more', { minimum: 0 })
const amount = number('a number, 0 or more', { minimum: 0 })
const userName = text('user name', (name) => (isUserName(name) ? undefined : 'is not a user name'))

/** Of amounts of memory as people write them. */
const MEMORY_UNITS: Readonly<Record<string, number>> = {
  B: 1,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
}

const MEMORY_SIZE = new RegExp(`^(\\d+(?:\\.\\d+)?) ?(${Object.keys(MEMORY_UNITS).join('|')})?$`)

/** Reads `512GiB`, `1.5TB`, `1024B` or a bare number of bytes; undefined when it is none or not a whole number of bytes. */
export function parseMemorySize(text: string): number | undefined {
  const match = MEMORY_SIZE.exec(text)
  const unit = MEMORY_UNITS[match?.[2] ?? 'B']
  if (!match || unit === undefined) return undefined
  const product = Number(match[1]) * unit
  // 4.1 × 10⁹ is 4099999999.9999995 in floating point.
  const bytes = Number.isInteger(product) ? product : Number(product.toPrecision(15))
  return Number.isSafeInteger(bytes) ? bytes : undefined
}

/** In bytes. */
export const memory = scalar(
  'size such as 512GiB',
  {
    anyOf: [
      { type: 'string', pattern: MEMORY_SIZE.source },
      { type: 'integer', minimum: 0 },
    ],
  },
  (value) => (typeof value === 'string' || typeof value === 'number' ? parseMemorySize(String(value)) : undefined),
  'a size such as 512GiB, 64GB or a whole number of bytes',
)

/** Labels are text, but `rack: 3` is accepted. */
export const label: Schema<string> = {
  type: 'text',
  json: () => ({ anyOf: [text().json(), { type: ['number', 'boolean'] }] }),
  read(node, reader, where) {
    const isOther = isScalar(node) && (typeof node.value === 'number' || typeof node.value === 'boolean')
    return isOther ? (node.source ?? String(node.value)) : text().read(node, reader, where)
  },
}

const jump = located(
  oneOrMore(
    text('jump host', (value) => {
      const wrong = value.split(',').find((hop) => parseHostSpec(hop.trim()) === undefined)
      return wrong === undefined ? undefined : 'is not a jump host; write a host of this file or [user@]host[:port]'
    }),
  ),
)

const resources = object({
  cpu: { schema: amount, about: 'Processor cores that jobs may use.', example: '16' },
  gpu: { schema: count, about: 'Graphics processors that jobs may use.', example: '8' },
  memory: { schema: memory, about: 'Memory that jobs may use. `GiB` is 2^30 bytes, `GB` is 10^9.', example: '512GiB' },
  custom: { schema: mapOf(amount), about: 'Resources of your own, by name.', example: '{ licence: 2 }' },
})

const connectionFields = {
  user: {
    schema: userName,
    about: 'The user to log in as.',
    example: 'root',
    fallback: 'what ssh_config says, else your own name',
  },
  port: {
    schema: port,
    about: "The port of the host's SSH server.",
    example: '1822',
    fallback: 'what ssh_config says, else 22',
  },
  transport: {
    schema: choice(TRANSPORTS),
    about:
      '`ssh2`: the built-in SSH client, with one connection per host for everything. `openssh`: the `ssh` of this machine, for what `ssh2` cannot do (GSSAPI, security keys, certificates). `local`: a shell of this machine, without SSH.',
    example: 'openssh',
    fallback: '`ssh2`, or `openssh` where ssh_config asks for something that only it can do',
  },
  jump: {
    schema: jump,
    about:
      'Hosts to connect through, in order: hosts of this file or `[user@]host[:port]`. `none` overrides `defaults` and ssh_config.',
    example: 'm10',
    fallback: 'ProxyJump or ProxyCommand of ssh_config',
  },
  identity_file: {
    schema: oneOrMore(path),
    about: 'Private keys to try before those of ssh_config. `~` and the tokens of IdentityFile are expanded.',
    example: '~/.ssh/cluster',
    fallback: 'the keys that ssh would try',
  },
  forward_agent: {
    schema: flag(),
    about: 'Whether the host may use your SSH agent. Turn it on only for hosts that you trust.',
    example: 'true',
    fallback: 'ForwardAgent of ssh_config, else false',
  },
  persist: {
    schema: number('a number of seconds, 0 or more', { minimum: 0 }),
    about:
      'How long the connection stays open for the next command after its last use, in a background process that only you can reach; 0: not at all. `--persist S` on the command line wins. Shells, `run`, `copy` and `fetch` share it; `hosts --check` and `doctor` always open a new connection. Only for `transport: ssh2`: connections of `transport: openssh` close when the program ends.',
    example: '300',
    fallback: 'it closes when the program ends',
  },
  shell: {
    schema: text('command'),
    about: 'What a shell on the host runs instead of the login shell.',
    example: 'tmux new -A -s muster',
    fallback: 'RemoteCommand of ssh_config, else the login shell',
  },
  resources: {
    schema: resources,
    about: 'Resources of the host that the scheduler may allocate.',
    example: '{ cpu: 16, gpu: 8, memory: 512GiB }',
  },
} as const satisfies Record<string, Field>

export const hostFields = {
  address: {
    schema: located(text('address')),
    about:
      "The DNS name or IP address to connect to. `%n` is the last number in the host's name without leading zeros (in commands and macros it is the host's position in this file), `%h` its name, `%%` a percent sign.",
    example: '"10.0.0.%n"',
    fallback: "HostName of ssh_config, else `ssh_alias`, else the host's name",
  },
  ssh_alias: {
    schema: located(text('name in ssh_config')),
    about:
      'The name under which ssh_config knows the host, as in `ssh ALIAS`: for a second entry with another user, for example. `%n`, `%h` and `%%` as in `address`.',
    example: 'm8',
    fallback: "the host's name",
  },
  ...connectionFields,
  labels: { schema: mapOf(label), about: 'Labels of your choice.', example: '{ rack: 3 }' },
} as const satisfies Record<string, Field>

export const fileFields = {
  cluster: {
    schema: text(),
    about:
      "The cluster's name, shown in the header. Its jobs are in a queue of this name; only one file on this machine can have a queue without a name. A console on several files shows the names of the files.",
    example: 'lab',
  },
  defaults: {
    schema: object(connectionFields),
    about: 'Values for all hosts; a host can override them.',
    example: '{ user: root, port: 22 }',
  },
  hosts: {
    schema: mapOf(orEmpty(object(hostFields)), 'host set'),
    about:
      'The machines. A key is a name or a host set of names (`"gpu[01-04]"`); a name alone (`m8:`) is enough for a host that ssh_config knows. Names are letters, digits, `_`, `.` and `-`, and are used once.',
    example: '\n  m8: { address: 192.168.1.80, port: 1822 }',
    fallback: '**required**, except in a file with `k8s`',
  },
  groups: {
    schema: mapOf(oneOrMore(hostSet), 'name'),
    about: 'Host sets by name, used as `@name`. Groups may use other groups.',
    example: '{ workers: "m[8-9]", gpus: "gpu[01-04]" }',
  },
} as const satisfies Record<string, Field>

const core = object(fileFields)

/** The schema of the whole file; the values of sections are under their keys. */
export function hostsYamlSchema(
  sections: readonly Section[],
): Schema<(typeof core extends Schema<infer T> ? T : never) & Readonly<Record<string, unknown>>> {
  return object({ ...fileFields, ...Object.fromEntries(sections.map(({ key, field }) => [key, field])) })
}

/** The same for editors. Names of hosts, host sets, and what keys mean together, only Muster itself checks. */
export function hostsYamlJson(sections: readonly Section[]): JsonSchema {
  const hostless = sections.filter(({ needsNoHost }) => needsNoHost)
  const having = (key: string, value: JsonSchema) => ({ type: 'object', required: [key], properties: { [key]: value } })
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'hosts.yaml of Muster',
    ...hostsYamlSchema(sections).json(),
    anyOf: [having('hosts', { type: 'object', minProperties: 1 }), ...hostless.map(({ key }) => having(key, {}))],
  }
}
