/** docs/hosts-yaml.md out of the schema that also reads the file: keys, types, defaults and examples cannot disagree. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { fileSections } from '../src/cli/bring-up/areas.ts'
import { hostsYamlSchema } from '../src/inventory/hosts-yaml-schema.ts'
import type { Field, Fields } from '../src/inventory/yaml-reader.ts'

const EXAMPLE = new URL('../docs/examples/lab.yaml', import.meta.url)
const OUTPUT = new URL('../docs/hosts-yaml.md', import.meta.url)

const INTRODUCTION = `# hosts.yaml

<!-- Generated from src/inventory/hosts-yaml-schema.ts and src/ops/*/section.ts by scripts/generate-hosts-yaml-docs.ts: change them there. -->

The machines, how they are reached, and what they are for. Muster reads the file that \`--hosts FILE\` names, else \`./hosts.yaml\`, else \`$XDG_CONFIG_HOME/muster/hosts.yaml\` (\`~/.config/muster/hosts.yaml\`). The file may be a pipe, as in \`--hosts <(…)\`. A hosts.yaml that was found, not named, is used only if it belongs to you (or root) and no other user can change it or its directory, since it can name programs that Muster runs. \`--hosts none\` reads none: then a target names its hosts itself, as in \`muster root@h1,h2:2222\`. All mistakes are reported at once, each as \`hosts.yaml:LINE:COLUMN\` and with the nearest valid word.

A name alone is enough for a host: everything else comes from \`~/.ssh/config\`. hosts.yaml takes precedence over ssh_config, and ssh_config over Muster's defaults.
`

const EDITORS = `## In an editor

\`muster schema hosts.yaml\` prints a JSON Schema of this file, \`muster schema preferences.yaml\` one of the preferences. Editors with yaml-language-server (VS Code, Neovim, Emacs, Helix and others) complete and check a file whose first line names its schema, as in the files that \`muster init\` and \`muster import\` write:

\`\`\`yaml
# yaml-language-server: $schema=file:///usr/lib/muster/lib/muster/docs/schema/files/hosts.yaml.schema.json
\`\`\`

This path leads to the schema of this machine's Muster, so the editor downloads nothing. If several people use the directory, put a copy beside hosts.yaml (\`muster schema hosts.yaml > hosts.schema.json\`), and write \`$schema=hosts.schema.json\`. Only Muster itself checks host sets, and rules about several keys together.
`

const HOST_SETS = `## Host sets

Targets on the command line, the console's \`/\`, the keys of \`hosts\` and every value called *host set* below are written in one language.

| expression | hosts |
| --- | --- |
| \`m8\` | one host |
| \`m[8-10]\`, \`gpu[01-16/2]\`, \`n[1,3,5-9]\` | a range, with its zero padding; with a step; a list |
| \`rack[1-2]n[01-08]\` | several ranges: every combination |
| \`@workers\`, \`@rack*\` | a group; every group that matches |
| \`all\`, \`@all\`, \`@*\` | every host of the file, also those without a group |
| \`m*\`, \`gpu?\` | every host that matches |
| \`a,b\` | hosts in either |
| \`all!m8\` | all but m8 |
| \`@gpus&@rack1\` | hosts in both |
| \`@a^@b\` | hosts in one, but not in both |
| \`(a,b)!b\` | parentheses; without them, from left to right |
| \`-\` | the names on stdin |
| \`ann@m8\`, \`m8:2222\`, \`root@10.0.0.9\`, \`[::1]:22\` | a host with another user or port, or one that is not in the file (targets only) |

Blanks are allowed around names and operators, and inside brackets: \`m[ 1 - 3, 5 ]\`. They do not separate names, except on stdin (\`-\`) and in prompts of the console. Host names contain no blanks; any other name that does is written in double quotes, as a JSON string: \`"a b"\`.

There is no notation for the empty set. An empty expression, a glob that matches nothing, and a target that leaves no host (\`m8!m8\`) are errors, so \`muster hosts --count\` never prints 0.

\`muster hosts --expand\`, \`--fold\`, \`--count\` and \`--split N\` are for scripts, like ClusterShell's \`nodeset\`: \`muster hosts --fold '@gpus!gpu02'\`. They connect to no host, look up no name, and also take names that are not in hosts.yaml. [What differs from ClusterShell](import.md#host-sets-of-clustershell), with the reasons.

One expression can name at most 100,000 hosts. Muster writes sets in the same language: \`m[8-10] (3)\`.

Shells give \`!\`, \`&\`, \`*\`, \`[\` and \`(\` a meaning of their own: put such a target in single quotes, as in \`muster run 'm[8-10]' -- uptime\`. Without them zsh says \`no matches found\`, and bash passes on the names of files that match, if there are any. In zsh, \`alias muster='noglob muster'\` makes quotes around brackets unnecessary; but then \`*.conf\` in \`muster copy all *.conf /etc/app/\` is not expanded either.
`

const SSH_CONFIG = `## What comes from ssh_config

If Muster finds a hosts.yaml without \`--hosts\`, a target may also be an alias in \`~/.ssh/config\` or a name in \`/etc/hosts\`. Other names are refused, because a mistyped one would be looked up in DNS: write \`user@host\` or \`host:port\`, or leave the file out with \`--hosts none\`. Where there is no hosts.yaml, \`muster m8 m9\` works with any name; a notice lists the names that are looked up in DNS. A word near the name of a verb (\`muster runn\`) is refused with the verb that was probably meant, unless a file declares it.

Where OpenSSH is installed, Muster runs \`ssh -G\` for each host, so \`Match\`, \`Include\` and the system's file mean what they mean to ssh (\`Match exec\` runs its command, as with ssh); where it is not, Muster reads the same files itself. Muster passes it the host's name (or its \`ssh_alias\`), with \`address\`, \`port\`, \`user\` and \`identity_file\` as options.

| ssh_config | Muster |
| --- | --- |
| HostName, Port, User, HostKeyAlias | as in ssh |
| IdentityFile, IdentitiesOnly, IdentityAgent | as in ssh; files that do not exist are skipped |
| ProxyJump | as in ssh, each hop with its own configuration; a jump host does not jump over itself |
| ProxyCommand | as in ssh, unless \`jump\` is set |
| UserKnownHostsFile, GlobalKnownHostsFile, StrictHostKeyChecking, HashKnownHosts | as in ssh, except as described below |
| HostKeyAlgorithms, KexAlgorithms, Ciphers, MACs | as in ssh; if the built-in transport has none of the allowed algorithms, the host goes through the system's ssh |
| RequiredRSASize | as in ssh: shorter RSA keys of the host are refused, and those of the user are not offered |
| ForwardAgent | as in ssh; \`forward_agent\` takes precedence |
| PreferredAuthentications, PubkeyAuthentication, PasswordAuthentication, KbdInteractiveAuthentication, BatchMode | as in ssh, for publickey, keyboard-interactive and password |
| ConnectTimeout | as in ssh; 10 seconds where it is not set, 4 for \`status\`; \`--connect-timeout\` takes precedence |
| ServerAliveInterval, ServerAliveCountMax | as in ssh; 5 seconds and 3 where the interval is not set or 0 |
| RemoteCommand | what a shell runs, unless \`shell\` is set |
| SetEnv, SendEnv | as in ssh, for shells |
| PKCS11Provider, CertificateFile, security keys, GSSAPI as the only method, KnownHostsCommand, RevokedHostKeys, \`@cert-authority\` in known_hosts, ProxyUseFdpass, AddressFamily, BindAddress, BindInterface, ForwardAgent with a socket | the host goes through the system's ssh (\`transport: openssh\`) |
| LocalForward, RemoteForward, DynamicForward, Tunnel, ForwardX11, ControlMaster, Compression | not used by the built-in transport |
| CheckHostIP, VerifyHostKeyDNS, UpdateHostKeys, NoHostAuthenticationForLocalhost | not used by the built-in transport: it looks up only names, only in known_hosts, and does not record keys that a host announces |

### Host keys

A host is trusted when ssh would trust it. Tests try more than 160 cases with ssh and with Muster against the same sshd; the verdicts differ only where Muster is stricter:

- A changed or revoked host key is refused, also with StrictHostKeyChecking no. ssh connects to such a host, without passwords and without agent forwarding.
- A known_hosts file that cannot be read (a directory, no permission) is an error. ssh treats it as an empty file.
- A new key that was accepted but could not be recorded (UserKnownHostsFile /dev/null, a full disk) is remembered until Muster ends. Another key of the same host is refused as changed. With StrictHostKeyChecking no, nothing is remembered.
- The built-in transport cannot check host certificates. A host that an \`@cert-authority\` line names goes through the system's ssh; with \`transport: ssh2\` it is refused.

As with ssh, UserKnownHostsFile none leaves no file to record a key in: new keys are refused then, whatever StrictHostKeyChecking says. Keys in the global file are still used. Muster does not ask a host for a key that is known but revoked; if another key of the host is known, it asks for that one.
`

const FILE: Fields = hostsYamlSchema(await fileSections()).fields ?? {}

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ')

function row(name: string, { schema, about, example, fallback, isRequired }: Field): string {
  const otherwise = isRequired ? '**required**' : (fallback ?? '')
  const sample = example === undefined || example.includes('\n') ? '' : `\`${name}: ${example}\``
  return `| \`${name}\` | ${[schema.type, otherwise, about, sample].map(cell).join(' | ')} |`
}

const HEAD = '| key | value | if absent | meaning | example |\n| --- | --- | --- | --- | --- |'

/** A table a mapping, the ones inside it below it. */
function tables(title: string, level: number, about: string, fields: Fields, example?: string): string[] {
  // A host takes every key of defaults: they are listed once.
  const shared = title === 'hosts' ? Object.keys(FILE.defaults?.schema.fields ?? {}) : []
  const entries = Object.entries(fields).filter(([name]) => !shared.includes(name))
  const sample = example?.includes('\n') ? `\`\`\`yaml\n${title}:${example}\n\`\`\`\n` : ''
  const own = `${'#'.repeat(level)} ${title}\n\n${about}${shared.length > 0 ? ' A host has the keys of `defaults`, and:' : ''}\n${sample && `\n${sample}`}\n${[HEAD, ...entries.map(([name, field]) => row(name, field))].join('\n')}\n`
  const inner = entries.flatMap(([name, field]) => {
    if (!field.schema.fields || name === 'resources') return []
    return tables(name, Math.min(level + 1, 4), field.about, field.schema.fields, field.example)
  })
  return [own, ...inner]
}

/** The whole text of docs/hosts-yaml.md. */
export function renderHostsYamlDocs(): string {
  const resources = FILE.defaults?.schema.fields?.resources
  return [
    INTRODUCTION,
    `\`\`\`yaml\n${readFileSync(EXAMPLE, 'utf8')}\`\`\`\n`,
    HOST_SETS,
    EDITORS,
    ...tables('The file', 2, 'Keys of the whole file.', FILE),
    ...(resources?.schema.fields ? tables('resources', 3, resources.about, resources.schema.fields) : []),
    SSH_CONFIG,
  ].join('\n')
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(OUTPUT, renderHostsYamlDocs())
