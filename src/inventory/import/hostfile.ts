/** Hostfiles of Open MPI and DeepSpeed (`host slots=4`) and of MPICH (`host:4`). The numbers of processes are not kept. */
import { basename } from 'node:path'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { parseHostSpec } from '../host-name.ts'
import { contentLines, type ImportFormat, type ImportSource, refuse, sourcesOf } from './format.ts'
import type { ImportedInventory } from './imported-inventory.ts'

/** mpirun(1), mpiexec of Hydra, and `parse_hostfile` of DeepSpeed. */
const COUNTS = ['slots', 'max_slots', 'max-slots', 'cpu', 'count']

function read(source: ImportSource, inventory: ImportedInventory): void {
  for (const { path, text } of sourcesOf(source, 'hostfile', ['/job/hostfile'])) {
    for (const { number, line } of contentLines(text)) {
      // Open MPI allows white space around the equals sign.
      const [first = '', ...settings] = line.replace(/\s*=\s*/g, '=').split(/\s+/)
      const wrong = settings.find((setting) => !/^[\w-]+=./.test(setting))
      if (wrong !== undefined)
        refuse(
          path,
          number,
          `${printable(wrong)} is not NAME=VALUE`,
          'A line of a hostfile is: HOST slots=4, or HOST:4. A list of hosts is read with: muster import list FILE',
        )
      // Processes, not a port; an address in brackets may have both.
      const [, host = first] = /^((?:[^:]+|.*\])):\d+$/.exec(first) ?? []
      const spec = parseHostSpec(host.replace(/^([^@]*@)?\[(.*)\]$/, '$1$2'))
      const values = new Map(settings.map((setting) => setting.split('=', 2) as [string, string]))
      const user = values.get('user') ?? values.get('username') ?? spec?.user
      if (host !== first) inventory.note(path, number, 'the number of processes after the colon has no counterpart')
      for (const key of values.keys())
        if (!['user', 'username'].includes(key)) inventory.note(path, number, `${printable(key)} has no counterpart`)
      if (spec === undefined) inventory.note(path, number, `${printable(first)} is left out: it is not a host`)
      else inventory.addHost(spec.host, defined({ user }), path, number)
    }
  }
}

export const hostfile: ImportFormat = {
  name: 'hostfile',
  about: 'a hostfile of Open MPI, MPICH or DeepSpeed',
  recognises: ({ path, text }) =>
    ['hostfile', 'machinefile'].includes(basename(path)) ||
    contentLines(text).some(({ line }) =>
      COUNTS.some((key) => new RegExp(`\\s${key}\\s*=\\s*\\d+(?:\\s|$)`).test(line)),
    ),
  read,
}
