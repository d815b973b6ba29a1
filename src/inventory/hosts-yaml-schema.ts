/** The keys of hosts.yaml: one table for the parser and for docs/hosts-yaml.md. */
import { isIPv4 } from 'node:net'
import { isScalar } from 'yaml'
import type { TransportName } from './host.ts'
import { isPort, isUserName, parseHostSpec } from './host-name.ts'
import { parseMemorySize } from './memory-size.ts'
import {
  choice,
  type Field,
  failType,
  flag,
  list,
  located,
  mapOf,
  number,
  object,
  oneOrMore,
  orEmpty,
  type Schema,
  text,
} from './yaml-reader.ts'

const TRANSPORTS: readonly TransportName[] = ['ssh2', 'openssh', 'local']

const RESTARTS = ['no', 'on-failure', 'unless-stopped', 'always'] as const

const hostSet = located(text('host set'))
const hostName = located(text('host'))
const absolutePath = text('absolute path', (value) => {
  if (!value.startsWith('/')) return 'must begin with /'
  return /[\x00-\x1f"]/.test(value) ? 'may not have a quote or a control character in it' : undefined
})
const hostPath = text('directory', (value) => {
  if (/[\x00-\x1f"]/.test(value)) return 'may not have a quote or a control character in it'
  if (value.split('/').includes('..')) return 'may not have .. in it'
  return /^(\/|~\/)[^/]/.test(value) ? undefined : 'must begin with / or ~/'
})
/** Ray makes sockets below it, and a socket's path has 107 bytes. */
const shortPath = text('absolute path', (value) => {
  if (!value.startsWith('/')) return 'must begin with /'
  if (value.length > 40) return 'has more than 40 characters: the sockets below it would have too long a path'
  return /^[\w./-]+$/.test(value) ? undefined : 'may have letters, digits, _ . - and / only'
})
const ipAddress = text('IPv4 address', (value) => (isIPv4(value) ? undefined : 'is not an IPv4 address'))
const nfsOptions = text('options', (value) =>
  /^[\w.,:=@%/+-]+$/.test(value) ? undefined : 'is a list such as rw,sync, without spaces',
)
const nfsClients = oneOrMore(
  text('clients', (value) =>
    /^[\w.:*?@/[\]-]+$/.test(value) ? undefined : 'is a name, an address, a network such as 10.0.0.0/24, or *',
  ),
)
const octalMode = text('mode in quotes', (value) =>
  /^[0-7]{3,4}$/.test(value) ? undefined : 'is an octal mode such as "1777"',
)
const path = text('path', (value) => (value.includes('"') ? 'may not have a quote in it' : undefined))
const port = number('a port from 1 to 65535', isPort)
/** The first and the last. */
const portRange: Schema<readonly [number, number]> = {
  type: 'range of ports such as 20000-20999',
  read(node, reader, where) {
    const said = text('range of ports').read(node, reader, where)
    if (said === undefined) return undefined
    const [, first, last] = (/^(\d{1,5})-(\d{1,5})$/.exec(said) ?? []).map(Number)
    if (first !== undefined && last !== undefined && isPort(first) && isPort(last) && first <= last) {
      return [first, last]
    }
    return failType(node, reader, where, 'a range of ports such as 20000-20999')
  },
}
const count = number('a whole number, 0 or more', (value) => Number.isSafeInteger(value) && value >= 0)
const seconds = number('a number of seconds, 0 or more', (value) => Number.isFinite(value) && value >= 0)
const amount = number('a number, 0 or more', (value) => Number.isFinite(value) && value >= 0)
const userName = text('user name', (name) => (isUserName(name) ? undefined : 'is not a user name'))

const memory: Schema<number> = {
  type: 'size such as 512GiB',
  read(node, reader, where) {
    const source =
      isScalar(node) && (typeof node.value === 'string' || typeof node.value === 'number') ? node.value : ''
    const bytes = parseMemorySize(String(source))
    if (bytes === undefined) {
      return failType(node, reader, where, 'a size such as 512GiB, 64GB or a whole number of bytes')
    }
    return bytes
  },
}

/** Labels are text, but `rack: 3` is clear enough. */
const label: Schema<string> = {
  type: 'text',
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
      '`ssh2`: inside Muster, one connection a host for everything. `openssh`: the `ssh` of this machine, for what `ssh2` cannot do (GSSAPI, security keys, certificates). `local`: a shell of this machine, no SSH at all.',
    example: 'openssh',
    fallback: '`ssh2`, or `openssh` where ssh_config asks for something that only it can do',
  },
  jump: {
    schema: jump,
    about:
      'Hosts to pass through, the first one first: hosts of this file or `[user@]host[:port]`. `none` switches off what `defaults` or ssh_config say.',
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
    about: 'Whether the host may use your SSH agent. Turn it on for hosts that you trust only.',
    example: 'true',
    fallback: 'ForwardAgent of ssh_config, else false',
  },
  persist: {
    schema: seconds,
    about:
      'How long the connection stays warm for the next command after its last use, in a background process that only you can reach; 0: not at all. `--persist S` on the command line wins. Shells, `run`, `copy` and `fetch` share it; `hosts --check` and `doctor` always log in anew. For `transport: ssh2` only: the `ssh` of `transport: openssh` ends with the program.',
    example: '300',
    fallback: 'it ends with the program',
  },
  shell: {
    schema: text('command'),
    about: 'What a shell on the host runs instead of the login shell.',
    example: 'tmux new -A -s muster',
    fallback: 'RemoteCommand of ssh_config, else the login shell',
  },
  resources: {
    schema: resources,
    about: 'What the scheduler may hand out on the host.',
    example: '{ cpu: 16, gpu: 8, memory: 512GiB }',
  },
} as const satisfies Record<string, Field>

const host = object({
  address: {
    schema: located(text('address')),
    about:
      "The DNS name or IP address to connect to. `%n` is the last number in the host's name without leading zeros, `%h` its name, `%%` a percent sign.",
    example: '"10.0.0.%n"',
    fallback: "HostName of ssh_config, else the host's name",
  },
  ...connectionFields,
  labels: { schema: mapOf(label), about: 'Words of your own about the host.', example: '{ rack: 3 }' },
})

const hostEntries = mapOf(orEmpty(host), 'host set')

const everywhere = { fallback: '`@all`' } as const

export const hostsYamlSchema = object({
  cluster: {
    schema: text(),
    about: "The cluster's name, shown in the header.",
    example: 'lab',
  },
  defaults: {
    schema: object(connectionFields),
    about: 'What holds for every host that does not say otherwise.',
    example: '{ user: root, port: 22 }',
  },
  hosts: {
    schema: hostEntries,
    about:
      'The machines. A key is a name or a host set of names (`"gpu[01-04]"`); a name alone (`m8:`) is enough for a host that ssh_config knows. Names are letters, digits, `_`, `.` and `-`, and are used once.',
    example: '\n  m8: { address: 192.168.1.80, port: 1822 }',
    isRequired: true,
  },
  groups: {
    schema: mapOf(oneOrMore(hostSet), 'name'),
    about: 'Host sets by name, used as `@name`. Groups may use other groups.',
    example: '{ workers: "m[8-9]", gpus: "gpu[01-04]" }',
  },
  trust: {
    schema: object({
      mesh: { schema: hostSet, about: 'Hosts that log in to each other without a password.', example: '"@all"' },
    }),
    about: 'Passwordless SSH between hosts.',
  },
  environment: {
    schema: located(
      object({
        conda: {
          schema: object({
            name: {
              schema: text('name', (value) =>
                /^[\w][\w.+-]*$/.test(value) ? undefined : 'is a name of letters, digits, _ . + and -',
              ),
              about: 'The environment.',
              example: 'myenv',
              isRequired: true,
            },
            prefix: {
              schema: hostPath,
              about: 'Its directory on the hosts.',
              example: '/opt/conda/envs/myenv',
              fallback: '`envs/NAME` of the conda that is there',
            },
            file: {
              schema: path,
              about:
                'What it holds: an environment.yml, an explicit list of packages, or an archive of conda-pack; relative to hosts.yaml. Without it the environment of `from` is what the others get.',
              example: 'environment.yml',
            },
            from: {
              schema: hostName,
              about: 'The host that the others follow: what is fetched, solved or built is made there once.',
              example: 'm10',
              fallback: 'the head of `ray` where it is one of `hosts`, else the first of them',
            },
            hosts: { schema: hostSet, about: 'Where.', example: '"@all"', ...everywhere },
          }),
          about: 'A conda environment.',
        },
        docker: {
          schema: object({
            image: { schema: text(), about: 'The image.', example: 'rayproject/ray:2.9.0', isRequired: true },
            file: {
              schema: path,
              about: 'A Dockerfile to build it from; relative to hosts.yaml.',
              example: 'Dockerfile',
            },
            name: {
              schema: text('name', (value) =>
                /^[a-zA-Z0-9][\w.-]+$/.test(value) ? undefined : 'is a name of letters, digits, _ . and -',
              ),
              about: 'The container.',
              example: 'trainer',
              fallback: '`muster`',
            },
            options: {
              schema: text(),
              about: 'Options of `docker run`, split at blanks; quotes and variables mean nothing.',
              example: '--network host --shm-size 8g',
              fallback: '`--network host`',
            },
            restart: {
              schema: choice(RESTARTS),
              about: 'When Docker starts it again by itself.',
              example: 'always',
              fallback: '`unless-stopped`',
            },
            command: {
              schema: list(text('word')),
              about: 'What runs in it.',
              example: '[sleep, infinity]',
              fallback: 'what the image says',
            },
            from: {
              schema: hostName,
              about: 'The host that the others follow: what is fetched, solved or built is made there once.',
              example: 'm10',
              fallback: 'the head of `ray` where it is one of `hosts`, else the first of them',
            },
            hosts: { schema: hostSet, about: 'Where.', example: '"@all"', ...everywhere },
          }),
          about: 'A container.',
        },
        venv: {
          schema: object({
            path: { schema: hostPath, about: 'Its directory on the hosts.', example: '/opt/lab', isRequired: true },
            requirements: {
              schema: path,
              about:
                'What it holds: requirements of pip, loose or pinned, with or without hashes, a uv.lock, or a pylock.toml; relative to hosts.yaml. Without it the packages of `from` are what the others get.',
              example: 'requirements.txt',
            },
            wheels: {
              schema: hostPath,
              about:
                'A directory on the hosts that holds wheels already, or is to hold them; one that the hosts share over NFS is filled once. Nothing is fetched when all that is needed lies there.',
              example: '/nfsroot/wheels',
              fallback: 'a directory under `~/.cache/muster` of each host',
            },
            from: {
              schema: hostName,
              about: 'The host that the others follow: what is fetched, solved or built is made there once.',
              example: 'm10',
              fallback: 'the head of `ray` where it is one of `hosts`, else the first of them',
            },
            python: {
              schema: text('command'),
              about: 'The interpreter that makes it.',
              example: 'python3.11',
              fallback: '`python3`',
            },
            hosts: { schema: hostSet, about: 'Where.', example: '"@all"', ...everywhere },
          }),
          about: 'A Python virtual environment.',
        },
      }),
    ),
    about: 'The software environment of a host set: one of `conda`, `docker` and `venv`.',
    example: '\n  conda: { name: myenv, file: environment.yml, hosts: "@all" }',
  },
  nfs: {
    schema: list(
      object({
        server: { schema: hostName, about: 'The host that exports.', example: 'm10', isRequired: true },
        path: { schema: absolutePath, about: 'The exported directory.', example: '/nfsroot', isRequired: true },
        options: {
          schema: nfsOptions,
          about: 'Options of the export, as in exports(5).',
          example: '"rw,sync,no_root_squash,no_subtree_check"',
          fallback: '`rw,sync,no_subtree_check`',
        },
        mode: {
          schema: octalMode,
          about: 'Mode of the exported directory, in octal.',
          example: '"1777"',
          fallback: 'as it is, 0755 where it is made',
        },
        clients: { schema: hostSet, about: 'The hosts that mount.', example: '"@workers"', isRequired: true },
        export_to: {
          schema: nfsClients,
          about: 'To whom it is exported, as exports(5) writes clients.',
          example: '"10.0.0.0/24"',
          fallback: 'the addresses of `clients`',
        },
        mount: {
          schema: absolutePath,
          about: 'Where they mount it.',
          example: '/nfsroot',
          fallback: 'the exported path',
        },
        mount_options: {
          schema: nfsOptions,
          about: 'Options of the mount, as in nfs(5).',
          example: 'nolock',
          fallback: '`defaults`',
        },
      }),
    ),
    about: 'Exports and who mounts them.',
    example: '\n  - { server: m10, path: /nfsroot, clients: "@workers", mount: /nfsroot }',
  },
  ray: {
    schema: object({
      head: { schema: hostName, about: 'The host of the head node.', example: 'm10', isRequired: true },
      workers: { schema: hostSet, about: 'The hosts of the workers.', example: '"@workers"', fallback: 'none' },
      port: { schema: port, about: "The head's port (GCS).", example: '6333', fallback: '6379' },
      dashboard_host: {
        schema: text('address'),
        about: 'Where the dashboard listens on the head. It is reached through the SSH connection.',
        example: '127.0.0.1',
        fallback: '127.0.0.1',
      },
      dashboard_port: { schema: port, about: "The dashboard's port.", example: '8265', fallback: '8265' },
      auth: {
        schema: choice(['token']),
        about: 'Whoever asks the cluster for anything has to have its token, which Muster makes. From Ray 2.52 on.',
        example: 'token',
        fallback: 'none: whoever reaches the head runs programs on all nodes',
      },
      ports: {
        schema: object({
          node_manager: { schema: port, about: "Of a node's raylet.", example: '6700', fallback: 'any free one' },
          object_manager: {
            schema: port,
            about: 'Where objects come from.',
            example: '6701',
            fallback: 'any free one',
          },
          workers: {
            schema: portRange,
            about: 'One for each process that runs tasks or actors.',
            example: '20000-20999',
            fallback: '`10002-19999`',
          },
        }),
        about: 'Ports that nodes listen at for each other, where a firewall has to know them.',
        example: '{ node_manager: 6700, object_manager: 6701, workers: 20000-20999 }',
      },
      node_ips: {
        schema: mapOf(ipAddress, 'host'),
        about: 'The addresses that nodes announce to each other, where SSH reaches a host at another one (NAT, WSL2).',
        example: '{ m8: 10.0.0.8 }',
        fallback: 'the address at which SSH reaches the host',
      },
      object_store: {
        schema: memory,
        about: "Memory of each node's object store.",
        example: '10GiB',
        fallback: "Ray's choice: 30 % of the memory",
      },
      temp_dir: {
        schema: shortPath,
        about: 'Where nodes keep sessions, sockets and logs.',
        example: '/scratch/ray',
        fallback: '`/tmp/ray`',
      },
      labels: {
        schema: located(oneOrMore(text('label'))),
        about: 'Which of the `labels` of hosts their nodes have, for tasks that select by them. From Ray 2.49 on.',
        example: '[rack, zone]',
        fallback: 'none',
      },
      supervise: {
        schema: choice(['systemd']),
        about:
          "systemd starts a node again that died, and with the machine: a unit of the system where the login is root, else one of the login's own.",
        example: 'systemd',
        fallback: 'nobody does: `muster ray up` brings back what died',
      },
      env: {
        schema: mapOf(label, 'name'),
        about: 'Environment variables of the nodes; what runs on them inherits these.',
        example: '{ NCCL_SOCKET_IFNAME: eth0 }',
      },
    }),
    about: 'A Ray cluster.',
  },
})
