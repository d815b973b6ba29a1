/** `environment` in hosts.yaml. */
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { defineSection, hostName, hostSet, path, type SectionContext } from '../../inventory/hosts-yaml-schema.ts'
import { choice, type Located, list, object, text } from '../../inventory/yaml-reader.ts'
import { section as raySection } from '../ray/section.ts'

/** The environment of a host set. Files are relative to hosts.yaml, paths are those of the hosts. */
export type EnvironmentSpec = {
  readonly hosts: readonly string[]
  /** The host that the others follow, one of them. */
  readonly from: string
} & (
  | { readonly kind: 'conda'; readonly name: string; readonly prefix?: string; readonly file?: string }
  | {
      readonly kind: 'docker'
      readonly image: string
      readonly file?: string
      readonly name: string
      readonly options: string
      readonly restart: (typeof RESTARTS)[number]
      /** Undefined: the command of the image. */
      readonly command?: readonly string[]
    }
  | {
      readonly kind: 'venv'
      readonly path: string
      /** The requirements or lock that it is made from. */
      readonly file?: string
      readonly wheels?: string
      readonly python: string
    }
)

const RESTARTS = ['no', 'on-failure', 'unless-stopped', 'always'] as const

const hostPath = text(
  'directory',
  [/^[^"]*$/, 'may not contain quotes or control characters'],
  [/^(?!(.*\/)?\.\.(\/|$))/, 'may not contain ..'],
  [/^(\/|~\/)[^/]/, 'must begin with / or ~/ and name a directory below that'],
)

const name = (pattern: RegExp, characters: string) =>
  text('name', [pattern, `is not a name of letters, digits, ${characters}`])

/** Fields of all kinds. */
const where = {
  from: {
    schema: hostName,
    about: 'The reference host: packages are fetched, solved or built there once, and the other hosts get the same.',
    example: 'm10',
    fallback: 'the head of `ray` if it is one of `hosts`, else the first of them',
  },
  hosts: { schema: hostSet, about: 'The hosts that get it.', example: '"@all"', fallback: '`@all`' },
} as const

export const section = defineSection(
  'environment',
  {
    schema: object(
      {
        conda: {
          schema: object({
            name: {
              schema: name(/^[\w][\w.+-]*$/, '_ . + and -'),
              about: 'The name of the environment.',
              example: 'myenv',
              isRequired: true,
            },
            prefix: {
              schema: hostPath,
              about: 'Its directory on the hosts.',
              example: '/opt/conda/envs/myenv',
              fallback: '`envs/NAME` of the conda on the host',
            },
            file: {
              schema: path,
              about:
                'The list of its packages: an environment.yml, an explicit list of packages, or an archive of conda-pack; relative to hosts.yaml. Without it, the other hosts get the environment of `from`.',
              example: 'environment.yml',
            },
            ...where,
          }),
          about: 'A conda environment.',
        },
        docker: {
          schema: object({
            image: { schema: text(), about: 'The image.', example: 'rayproject/ray:2.9.0', isRequired: true },
            file: {
              schema: path,
              about: 'A Dockerfile to build the image from; relative to hosts.yaml.',
              example: 'Dockerfile',
            },
            name: {
              schema: name(/^[a-zA-Z0-9][\w.-]+$/, '_ . and -, of two or more'),
              about: 'The name of the container.',
              example: 'trainer',
              fallback: '`muster`',
            },
            options: {
              schema: text(),
              about: 'Options of `docker run`, split at spaces; quotes and variables are not interpreted.',
              example: '--network host --shm-size 8g',
              fallback: '`--network host`',
            },
            restart: {
              schema: choice(RESTARTS),
              about: 'When Docker restarts the container.',
              example: 'always',
              fallback: '`unless-stopped`',
            },
            command: {
              schema: list(text('word')),
              about: 'The command that runs in the container.',
              example: '[sleep, infinity]',
              fallback: 'the command of the image',
            },
            ...where,
          }),
          about: 'A container.',
        },
        venv: {
          schema: object({
            path: { schema: hostPath, about: 'Its directory on the hosts.', example: '/opt/lab', isRequired: true },
            requirements: {
              schema: path,
              about:
                'The list of its packages: requirements of pip (loose or pinned, with or without hashes), a uv.lock, or a pylock.toml; relative to hosts.yaml. Without it, the other hosts get the packages of `from`.',
              example: 'requirements.txt',
            },
            wheels: {
              schema: hostPath,
              about:
                'A directory of wheels on the hosts. Missing wheels are added; a directory that the hosts share over NFS is filled once. If it has all of them, nothing is fetched.',
              example: '/nfsroot/wheels',
              fallback: 'a directory under `~/.cache/muster` on each host',
            },
            python: {
              schema: text('command'),
              about: 'The interpreter that creates it.',
              example: 'python3.11',
              fallback: '`python3`',
            },
            ...where,
          }),
          about: 'A Python virtual environment.',
        },
      },
      { isOneOf: true },
    ),
    about: 'The software environment of a host set: one of `conda`, `docker` and `venv`.',
    example: '\n  conda: { name: myenv, file: environment.yml, hosts: "@all" }',
  },
  ({ conda, docker, venv }, context): EnvironmentSpec | undefined => {
    if (conda) {
      const { name = '', prefix, file } = conda
      return { kind: 'conda', name, ...placesOf(conda, context), ...defined({ prefix, file }) }
    }
    if (docker) {
      const { image = '', name = 'muster', options = '--network host', restart = 'unless-stopped' } = docker
      const { command, file } = docker
      const own = { image, name, options, restart, ...defined({ command, file }) }
      return { kind: 'docker', ...own, ...placesOf(docker, context) }
    }
    if (!venv) return undefined
    const { path: directory = '', requirements: file, wheels, python = 'python3' } = venv
    return { kind: 'venv', path: directory, python, ...placesOf(venv, context), ...defined({ file, wheels }) }
  },
)

type Places = { readonly from?: Located<string>; readonly hosts?: Located<string> }

function placesOf(raw: Places, context: SectionContext): Pick<EnvironmentSpec, 'from' | 'hosts'> {
  const hosts = context.expandOrAll(raw.hosts)
  if (raw.from === undefined) {
    const head = context.other(raySection)?.head
    return { hosts, from: (head !== undefined && hosts.includes(head) ? head : hosts[0]) ?? '' }
  }
  const from = context.knownHost(raw.from)
  if (context.hosts.some((host) => host.name === from) && !hosts.includes(from)) {
    context.fail(raw.from.offset, `${printable(from)} is not one of the hosts of the environment`)
  }
  return { hosts, from }
}
