import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { defined } from '../../../src/base/defined.ts'
import { formatNote, importInventory } from '../../../src/inventory/import/import-inventory.ts'
import { jumpOfArguments, jumpOfCommand } from '../../../src/inventory/import/proxy-command.ts'
import { splitShellWords } from '../../../src/inventory/import/shell-words.ts'
import { findProgram } from '../../../src/inventory/ssh-config/openssh-source.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-formats-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

function write(name: string, text: string, mode = 0o644): string {
  const path = join(directory, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

/** The lines below the two of the heading, and the notes; `file` is written unless its text is given to the importer directly. */
async function importText(kind: string | undefined, file: string, text: string, PATH = '') {
  const path = write(file, text)
  const env = { PATH }
  const source = { file: path, cwd: directory, home: join(directory, 'home'), etc: '/nonexistent', env }
  const result = await importInventory({ ...defined({ kind }), ...source })
  const lines = result.text.trimEnd().split('\n').slice(2)
  return { lines, notes: result.notes.map((note) => formatNote(note).replaceAll(`${directory}/`, '')) }
}

describe('new formats', () => {
  test('reads the local provider of Ray', async () => {
    const text = `cluster_name: default
provider:
    type: local
    head_ip: 10.0.0.1
    worker_ips: [10.0.0.2, "2001:db8::3"]
    coordinator_address: 10.0.0.9:1234
auth:
    ssh_user: ubuntu
    ssh_private_key: ~/.ssh/id_rsa
    ssh_proxy_command: ssh -W %h:%p -q ann@gate
`
    const { lines, notes } = await importText(undefined, 'cluster.yaml', text)
    const keys = 'user: ubuntu, jump: "ann@gate", identity_file: ~/.ssh/id_rsa'
    expect(lines).toEqual([
      'hosts:',
      `  "10.0.0.[1-2]": { ${keys} }`,
      `  host-2001-db8-3: { address: "2001:db8::3", ${keys} }`,
      'groups:',
      '  head: 10.0.0.1',
      '  workers: "10.0.0.2,host-2001-db8-3"',
    ])
    expect(notes).toEqual([
      'cluster.yaml: read as ray',
      'cluster.yaml:5: 2001:db8::3 is called host-2001-db8-3 here',
      'cluster.yaml:6: provider.coordinator_address has no counterpart',
    ])
  })

  test('refuses a provider of Ray that makes its hosts', async () => {
    const text = 'cluster_name: c\nprovider:\n  type: aws\n  region: x\n'
    await expect(importText(undefined, 'c.yaml', text)).rejects.toThrow('c.yaml:3: the provider aws names no hosts')
  })

  test('reads hostfiles of Open MPI, DeepSpeed and MPICH', async () => {
    const { lines, notes } = await importText(
      undefined,
      'machines',
      '# GPUs\nworker-1 slots=8\nworker-2 slots = 8 max_slots=9\nann@worker-3 slots=4\n[2001:db8::1]:4\nn4:16 user=bob\n',
    )
    expect(lines).toEqual([
      'hosts:',
      '  "worker-[1-2]":',
      '  worker-3: { user: ann }',
      '  host-2001-db8-1: { address: "2001:db8::1" }',
      '  n4: { user: bob }',
    ])
    expect(notes).toEqual([
      'machines: read as hostfile',
      'machines:2: slots has no counterpart (3 times, first here)',
      'machines:3: max_slots has no counterpart',
      'machines:5: the number of processes after the colon has no counterpart (2 times, first here)',
      'machines:5: 2001:db8::1 is called host-2001-db8-1 here',
    ])
  })

  test('reads attributes and values of genders as groups', async () => {
    const { lines, notes } = await importText(
      undefined,
      'genders',
      'n[1-3],login compute,rack=a%%1\nn3  gpu,altname=e%n # the last\n',
    )
    expect(lines).toEqual([
      'hosts:',
      '  login:',
      '  "n[1-3]":',
      'groups:',
      '  compute: "login,n[1-3]"',
      '  rack: "login,n[1-3]"',
      '  "group-rack:a-1": "login,n[1-3]"',
      '  gpu: n3',
      '  altname: n3',
    ])
    expect(notes).toContain('genders:2: altname: its value e%n has no counterpart')
  })

  test('reads a list of hosts and host sets', async () => {
    const text = '# mine\nm8\nroot@m9:2222\n gpu[01-03] # three\n2001:db8::1\n\n'
    expect((await importText(undefined, 'hosts', text)).lines).toEqual([
      'hosts:',
      '  "gpu[01-03]":',
      '  m8:',
      '  m9: { user: root, port: 2222 }',
      '  host-2001-db8-1: { address: "2001:db8::1" }',
    ])
  })

  test('writes many irregular names as several keys that YAML can read', async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `n${index * 3}`)
    const { lines } = await importText('list', 'l', names.join('\n'))
    expect(lines.length).toBeGreaterThan(4)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(1024)
  })

  test('refuses words that are no list, no hostfile and no genders', async () => {
    const text = 'foo\ncat <<EOF\n'
    await expect(importText('list', 'l', text)).rejects.toThrow('l:2: cat <<EOF is more than one word')
    await expect(importText('hostfile', 'l', text)).rejects.toThrow('l:2: <<EOF is not NAME=VALUE')
    await expect(importText('genders', 'l', 'a b c\n')).rejects.toThrow('l:1: c is a third word')
    await expect(importText('list', 'l', '#!/bin/sh\nfoo\n')).rejects.toThrow('it is a program')
    await expect(importText('list', 'l', 'a\u0000b\n')).rejects.toThrow('it is not a text file')
  })
})

describe('recognising a format', () => {
  test.each([
    ['inv', '[web]\nfoo\n', 'ansible'],
    ['inv', 'foo ansible_host=10.0.0.1\n', 'ansible'],
    ['inv.yml', 'all:\n  hosts:\n    h1:\n', 'ansible'],
    ['config', 'Host m8\n  HostName 10.0.0.8\n', 'ssh'],
    ['groups.yaml', 'roles:\n  adm: head\n  all_nodes: n[1-2]\n', 'clush'],
    ['local.cfg', 'adm: head\n', 'clush'],
    ['.clusterssh/clusters', 'web a b\n', 'clusterssh'],
    ['nodes', 'n[1-4] compute,rack=3\n', 'genders'],
    ['nodes', 'n1\nn2\n', 'list'],
  ])('%s with %j', async (file, text, format) => {
    expect((await importText(undefined, file, text)).notes).toContain(`${file}: read as ${format}`)
  })

  test.each([
    ['n1:4\nn2:4\n', 'no format is recognised in it'],
    ['ls\ncat\n', 'no format is recognised in it'],
    ['#!/bin/sh\nm8\n', 'no format is recognised in it'],
    ['n1 slots=2\nn2 ansible_host=x\n', 'it may be ansible or hostfile'],
  ])('does not guess about %j', async (text, reason) => {
    await expect(importText(undefined, 'nodes', text)).rejects.toThrow(reason)
  })
})

describe('jump hosts', () => {
  test.each([
    ['ssh -W %h:%p gate', { jump: 'gate', leftOut: [] }],
    ['/usr/bin/ssh -q -l ann -p 2200 -W [%h]:%p gate', { jump: 'ann@gate:2200', leftOut: [] }],
    ['exec ssh -qW %h:%p ann@gate:2200', { jump: 'ann@gate:2200', leftOut: [] }],
    ['ssh -J outer -W %h:%p 2001:db8::1', { jump: 'outer,2001:db8::1', leftOut: [] }],
    ['ssh -i key -o User=x gate -W %h:%p', { jump: 'gate', leftOut: ['-i key', '-o User=x'] }],
    ['ssh gate nc %h %p', undefined],
    ['ssh -W localhost:22 gate', undefined],
    ['nc -x proxy:1080 %h %p', undefined],
    ['ssh -W %h:%p gate; rm -r x', undefined],
  ])('%s', (command, jump) => {
    expect(jumpOfCommand(splitShellWords(command) ?? [])).toEqual(jump)
  })

  test.each([
    ['-o ProxyCommand="ssh -W %h:%p -q bob@gate"', 'bob@gate'],
    ["-oProxyCommand='ssh -W %h:%p gate' -o Port=3", 'gate'],
    ['-C -J a,b', 'a,b'],
    ['-o "ProxyJump a:22"', 'a:22'],
    ['-o Compression=yes', undefined],
  ])('of the arguments %s', (text, jump) => {
    expect(jumpOfArguments(splitShellWords(text) ?? [])?.jump).toBe(jump)
  })

  test('of a machine with several names in ssh_config go to the first that can be one', async () => {
    expect(await importText('ssh', 'config', 'Host ops/db db %p\n  HostName 10.0.0.1\n')).toMatchObject({
      lines: ['hosts:', '  db:'],
      notes: expect.arrayContaining(['config:1: ops/db %p: other names of db']),
    })
  })

  test('of ssh_config are written where nothing of the command is lost', async () => {
    const text = `Host m1 m2
  ProxyCommand ssh -W %h:%p gate
Host m3
  ProxyCommand ssh -i key -W %h:%p gate
Host m4
  ProxyJump other
Host m*
  ProxyCommand ssh -W %h:%p ann@wide
Host m5 !m5
Host m6
  HostName x
`
    expect((await importText('ssh', 'config', text)).lines).toEqual([
      'hosts:',
      '  "m[1-2]": { jump: gate }',
      '  "m[3-4]":',
      '  "m[5-6]": { jump: "ann@wide" }',
    ])
  })
})

describe('an inventory of Ansible without Ansible', () => {
  test.each([
    ['i', '#!/usr/bin/env python3\nimport sys\n', 'it is an inventory script, which only Ansible can read'],
    ['i', 'foo\ncat <<EOF\n', 'i:2: <<EOF is not NAME=VALUE'],
    ['i', 'foo\nimport sys\n', 'i:2: sys is not NAME=VALUE'],
    ['i', '$ANSIBLE_VAULT;1.1;AES256\n3132\n', 'it is encrypted with ansible-vault'],
    ['i.toml', '[web.hosts]\nh1 = {}\n', 'it is TOML'],
    ['i.yml', 'plugin: aws_ec2\n', 'it configures an inventory plugin'],
    ['i.yml', '- hosts: all\n', 'it is not a mapping'],
    ['i.yml', 'all:\n  hosts:\n    12:\n', 'i.yml:3: the name of a host must be text: write "12"'],
    ['i.yml', 'all:\n  hosts: [a]\n', 'i.yml:2: hosts of all must be a mapping'],
    ['i', '[a:vars]\nx=1\n', 'i:1: there is no group a'],
    ['i', '[a:children]\nb\n', 'i:2: there is no group b'],
    ['i', '[a:children]\nb\n[b:children]\na\n', 'groups form a loop: a → b → a'],
    ['i', 'h[1:]\n', 'i:1: h[1:]: [1:] has no end'],
    ['i', 'h[1:2\n', '[ without ] after it'],
    ['i', 'h "\n', 'a quote is not closed'],
    ['i', '[a]\nh\n[a:children]\nall\n', 'i:1: group all cannot be in group a'],
    ['i', 'h\n[a:children]\nungrouped\n', 'group ungrouped cannot be in group a'],
    ['i.yml', 'all:\n  hosts:\n    a: 3\n', 'i.yml:3: the variables of a must be a mapping'],
    ['i', 'a[1:100000]\n'.repeat(11), 'names more than 1000000 hosts'],
  ])('%s: refuses %j', async (file, text, reason) => {
    await expect(importText('ansible', file, text)).rejects.toThrow(reason)
  })

  test('refuses variables of directories, and says how to go on without them', async () => {
    write('group_vars/web.yml', 'ansible_user: x\n')
    const importing = importText('ansible', 'i', '[web]\nh\n')
    await expect(importing).rejects.toThrow('group_vars/web.yml: variables in this directory can only be read by')
    await expect(importing).rejects.toHaveProperty('hint', expect.stringContaining('muster import ansible - < '))
    rmSync(join(directory, 'group_vars'), { recursive: true })
    write('group_vars/other.yml', '')
    expect((await importText('ansible', 'i', '[web]\nh\n')).lines).toContain('  h:')
  })

  test('reads IPv6 addresses, ports and comments as Ansible does', async () => {
    const text = '2001:db8::1\n[2001:db8::2]:2222 ansible_user=a#b\nh[1:2]:22\n[::ffff:10.0.0.1]:22\n'
    expect((await importText('ansible', 'i', text)).lines).toEqual([
      'hosts:',
      '  host-2001-db8-1: { address: "2001:db8::1" }',
      '  host-2001-db8-2: { address: "2001:db8::2", port: 2222, user: a }',
      '  "h[1-2]": { port: 22 }',
      '  host--ffff-10.0.0.1: { address: "::ffff:10.0.0.1", port: 22 }',
    ])
  })

  test('takes a port after a colon only where a host is named first, and below its variables', async () => {
    const text = 'h1:22\nh1:33\nh2\nh2:22\nh3:22 ansible_port=44\n'
    expect((await importText('ansible', 'i', text)).lines).toEqual([
      'hosts:',
      '  h1: { port: 22 }',
      '  h2:',
      '  h3: { port: 44 }',
    ])
  })

  test('gives hosts of no group the variables of ungrouped, and writes values as Python does', async () => {
    const text = `all:
  hosts: { a: }
  children:
    ungrouped: { vars: { ansible_user: 007 } }
    g: { hosts: { b: , c: { ansible_user: on } } }
`
    expect((await importText('ansible', 'i.yml', text)).lines.slice(1, 4)).toEqual([
      '  a: { user: "7" }',
      '  b:',
      '  c: { user: "True" }',
    ])
  })

  test('resolves templates that name a variable, and leaves out hosts whose address needs more', async () => {
    const text = `all:
  vars: { domain: lan, ansible_host: "{{ inventory_hostname }}.{{ domain }}" }
  hosts:
    a:
    b: { ansible_host: "{{ lookup('env', 'X') }}" }
    c: { ansible_host: !vault "$ANSIBLE_VAULT;1.1" }
`
    const { lines, notes } = await importText('ansible', 'i.yml', text)
    expect(lines).toEqual(['hosts:', '  a: { address: a.lan }'])
    expect(notes).toContain("i.yml:5: b is left out: its ansible_host is a template: {{ lookup('env', 'X') }}")
    expect(notes).toContain('i.yml:6: c is left out: its ansible_host is encrypted with ansible-vault')
  })

  test('prefers the names of ssh for a variable, and groups of a higher priority', async () => {
    const text = `h ansible_host=a ansible_ssh_host=b
[x]
h
[y]
h
[x:vars]
ansible_user=ux
ansible_group_priority=5
[y:vars]
ansible_user=uy
`
    expect((await importText('ansible', 'i', text)).lines).toContain('  h: { address: b, user: ux }')
  })

  test('uses the last of equal keys, and reads y as text, as Ansible does', async () => {
    const text = 'all:\n  hosts:\n    a: { ansible_user: x }\n    a: { ansible_user: y }\n'
    expect((await importText('ansible', 'i.yml', text)).lines).toEqual(['hosts:', '  a: { user: "y" }'])
  })

  test('gives notes of a YAML file their lines, and folds equal ones', async () => {
    const text = 'all:\n  hosts:\n    a: { x: 1 }\n    b:\n      x: 2\n  what: 3\n'
    const { notes } = await importText('ansible', 'i.yml', text)
    expect(notes).toEqual([
      'i.yml:3: variable x has no counterpart (2 times, first here)',
      'i.yml:6: what is left out: a group has hosts, children and vars',
    ])
  })

  test('reads the output of ansible-inventory --list from a file', async () => {
    const { lines } = await importText(undefined, 'list.json', LIST)
    expect(lines).toEqual(IMPORTED_LIST)
  })
})

/** Printed by ansible-core 2.19.14 about an INI file with group_vars, one of them encrypted; shortened. */
const VAULTED = { __ansible_vault: '$ANSIBLE_VAULT;1.1;AES256\n39323633633333333666663363353033\n' }
const LIST = JSON.stringify({
  _meta: {
    hostvars: {
      '2001:db8::7': { ansible_port: 22, vaulted: VAULTED },
      'db-a': {
        ansible_port: 2022,
        ansible_ssh_common_args: '-o ProxyCommand="ssh -q -W %h:%p ann@gate -p 2200"',
        vaulted: VAULTED,
      },
      foo: { ansible_host: '10.0.0.5', ansible_port: 2222, ansible_user: 'deploy', vaulted: VAULTED },
      mail: { ansible_user: 'ann', vaulted: VAULTED },
      'www01.example.com': {
        ansible_host: '{{ inventory_hostname_short }}.lan',
        ansible_user: 'deploy',
        http_port: 80,
      },
    },
    profile: 'inventory_legacy',
  },
  all: { children: ['ungrouped', 'prod'] },
  db: { hosts: ['db-a', '2001:db8::7'] },
  prod: { children: ['web', 'db'] },
  ungrouped: { hosts: ['mail'] },
  web: { hosts: ['www01.example.com', 'foo'] },
})
const IMPORTED_LIST = [
  'hosts:',
  '  db-a: { port: 2022, jump: "ann@gate:2200" }',
  '  host-2001-db8-7: { address: "2001:db8::7", port: 22 }',
  '  mail: { user: ann }',
  '  www01.example.com: { address: www01.lan, user: deploy }',
  '  foo: { address: 10.0.0.5, port: 2222, user: deploy }',
  'groups:',
  '  db: "db-a,host-2001-db8-7"',
  '  prod: "@web,@db"',
  '  web: "foo,www01.example.com"',
]

describe('an inventory of Ansible with ansible-inventory', () => {
  /** A stand-in for ansible-inventory that does this. */
  const install = (script: string): string => {
    write('bin/ansible-inventory', `#!/bin/sh\n${script}`, 0o755)
    return `${join(directory, 'bin')}:/usr/bin:/bin`
  }

  test('reads what the program prints about the file, and says so', async () => {
    write('list.json', LIST)
    const PATH = install(`[ "$1 $2 $3" = "-i ${directory}/i --list" ] && exec cat ${directory}/list.json`)
    const { lines, notes } = await importText('ansible', 'i', '#!/bin/sh\nfoo\n', PATH)
    expect(lines).toEqual(IMPORTED_LIST)
    expect(notes[0]).toBe('i: read with bin/ansible-inventory')
    expect(notes.join('\n')).not.toContain('39323633')
  })

  test('refuses what the program refuses, with its message, printable', async () => {
    const PATH = install('printf "ERROR! \\033[2Jno secrets found\\n" >&2; exit 4')
    const importing = importText('ansible', 'i', 'h1\n', PATH)
    await expect(importing).rejects.toThrow(/ERROR! [^\u001b]*no secrets found/)
    await expect(importing).rejects.toHaveProperty('hint', expect.stringContaining('muster import ansible - < '))
  })

  test('says how to give the password of ansible-vault', async () => {
    const PATH = install('echo "[ERROR]: Attempting to decrypt but no vault secrets found." >&2; exit 4')
    await expect(importText('ansible', 'i', 'h1\n', PATH)).rejects.toHaveProperty(
      'hint',
      expect.stringContaining('ANSIBLE_VAULT_PASSWORD_FILE'),
    )
  })

  test('ends a program that prints too much, and one that prints something else', async () => {
    const PATH = install('exec yes')
    await expect(importText('ansible', 'i', 'h1\n', PATH)).rejects.toThrow('ansible-inventory printed too much')
    install('echo []')
    await expect(importText('ansible', 'i', 'h1\n', PATH)).rejects.toThrow('printed something else than an inventory')
  })

  test('ends the program and its children when it is interrupted', async () => {
    const stop = new AbortController()
    const started = join(directory, 'started')
    const PATH = install(`sleep 1000 & touch ${started}; wait`)
    const file = write('i', 'h1\n')
    const source = { kind: 'ansible', file, cwd: directory, home: directory, env: { PATH }, signal: stop.signal }
    const importing = importInventory(source)
    importing.catch(() => {})
    await expect.poll(() => existsSync(started), { timeout: 60_000 }).toBe(true)
    stop.abort(new Error('stopped'))
    // It waits for everything that has the program's output open.
    await expect(importing).rejects.toThrow('stopped')
  })

  test('ends also when something has left the program and keeps its output open', async () => {
    const stop = new AbortController()
    const PATH = install(`setsid sh -c 'echo $$ >${directory}/pid; exec sleep 1000' & wait`)
    const file = write('i', 'h1\n')
    const source = { kind: 'ansible', file, cwd: directory, home: directory, env: { PATH }, signal: stop.signal }
    const importing = importInventory(source)
    importing.catch(() => {})
    const pid = () => (existsSync(join(directory, 'pid')) ? Number(readFileSync(join(directory, 'pid'))) : 0)
    await expect.poll(pid, { timeout: 60_000 }).toBeGreaterThan(0)
    const started = pid()
    onTestFinished(() => void process.kill(started, 'SIGKILL'))
    stop.abort(new Error('stopped'))
    await expect(importing).rejects.toThrow('stopped')
  })

  test('runs an executable file only if its format was named', async () => {
    write('list.json', LIST)
    const PATH = install(`touch ${directory}/ran; exec cat ${directory}/list.json`)
    const path = write('hosts', '[web]\nh1 ansible_port=22\n', 0o755)
    const source = { file: path, cwd: directory, home: directory, env: { PATH } }
    await expect(importInventory(source)).rejects.toThrow('it is executable, and Ansible would run it')
    expect(existsSync(join(directory, 'ran'))).toBe(false)
    await importInventory({ ...source, kind: 'ansible' })
    expect(existsSync(join(directory, 'ran'))).toBe(true)
  })

  const program = findProgram('ansible-inventory', process.env.PATH)
  test.skipIf(program === undefined && process.env.CI === undefined)(
    'reads with the real program what it alone can read',
    async () => {
      write('inventory/group_vars/web.yml', 'ansible_user: deploy\nansible_host: "{{ inventory_hostname }}.lan"\n')
      write('inventory/a', '[web]\nw[1:2]\n')
      write('inventory/b.sh', '#!/bin/sh\necho \'{"db": {"hosts": ["d1"], "vars": {"ansible_port": 2022}}}\'\n', 0o755)
      const source = {
        file: 'inventory',
        cwd: directory,
        home: directory,
        env: { PATH: process.env.PATH, HOME: directory },
      }
      const { text } = await importInventory(source)
      expect(text.trimEnd().split('\n').slice(2).toSorted()).toEqual(
        [
          '  d1: { port: 2022 }',
          '  db: d1',
          '  w1: { address: w1.lan, user: deploy }',
          '  w2: { address: w2.lan, user: deploy }',
          '  web: "w[1-2]"',
          'groups:',
          'hosts:',
        ].toSorted(),
      )
      write('inventory/c', 'foo\ncat <<EOF\n')
      await expect(importInventory(source)).rejects.toThrow('ansible-inventory cannot read')
    },
  )

  test('reads standard input itself', async () => {
    const PATH = install('exit 1')
    const source = { kind: 'ansible', file: '-', text: 'h1\n', cwd: directory, home: directory, env: { PATH } }
    expect((await importInventory(source)).hosts).toBe(1)
  })
})
