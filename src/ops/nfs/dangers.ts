/** Dangerous or useless options of exports and mounts, and what to write instead. Those that hosts.yaml declares are notes. Pure. */
import { shellQuote } from '../../base/shell-quote.ts'
import { type Finding, onHost } from '../kernel/finding.ts'
import type { ExportEntry, Exports } from './exports.ts'
import type { Point } from './facts.ts'
import { type Mount, versionOf } from './mounts.ts'
import type { Share } from './wanted.ts'

type Danger = Pick<Finding, 'id' | 'cause' | 'hint'>

/** Of lines that are not Muster's. */
export function dangersOfForeign(host: string, { entries }: Exports): Finding[] {
  return entries.flatMap((entry) => {
    const place = `${entry.file}:${entry.line}`
    return dangersOf(entry).map(({ id, cause, hint }) => ({
      host,
      gravity: 'risk' as const,
      id,
      cause: `${place}: ${cause}`,
      ...(hint === undefined ? {} : { hint }),
    }))
  })
}

/** Dangers that hosts.yaml declares. */
export function dangersOfShare(host: string, share: Share, point: Point | undefined): Finding[] {
  const found = share.exportTo.flatMap((client) =>
    dangersOf({ path: share.path, client, options: share.options, isStray: false }, share.clientAddresses),
  )
  const once = found.filter(({ id }, index) => found.findIndex((other) => other.id === id) === index)
  const notes = once.map(({ id, cause, hint }): Finding => {
    return { host, gravity: 'note', id, cause: `as declared: ${cause}`, ...(hint === undefined ? {} : { hint }) }
  })
  return [...notes, ...modeOf(host, share, point)]
}

const SHOWN_ADDRESSES = 3

function namedClients(addresses: readonly string[]): string {
  const left = addresses.length - SHOWN_ADDRESSES
  const names = `${addresses.slice(0, SHOWN_ADDRESSES).join(', ')}${left > 0 ? ` and ${left} more` : ''}`
  return `Leave out export_to in hosts.yaml: then only the clients may mount it (${names}).`
}

/** `addresses`: of the clients that hosts.yaml declares; undefined: it is not declared there. */
function dangersOf(
  { path, client, options, isStray }: Pick<ExportEntry, 'path' | 'client' | 'options' | 'isStray'>,
  addresses?: readonly string[],
): Danger[] {
  const isWritten = options.includes('rw')
  const found: Danger[] = []
  if (isStray) {
    return [
      {
        id: 'export-space',
        cause: `the space before (${options.join(',')}) gives the client in front of it the defaults, and these options to the whole world`,
        hint: `Write ${path} CLIENT(${options.join(',')}) without a space.`,
      },
    ]
  }
  if (client === '*') {
    const hint =
      addresses === undefined
        ? `Name the clients in place of *: ${path} CLIENT(${options.join(',')}), with the address or the network of the clients.`
        : namedClients(addresses)
    found.push({ id: 'export-world', cause: `${path} is exported to every host that can reach the server`, hint })
  }
  if (options.includes('no_root_squash')) {
    const cause = `no_root_squash: root of ${client === '*' ? 'any machine' : 'every client'} is root in ${path}`
    found.push({
      id: 'export-root',
      cause,
      hint: 'Write root_squash, or all_squash,anonuid=UID,anongid=GID for one shared account.',
    })
  }
  if (isWritten && options.includes('async')) {
    const cause = `async: what clients wrote to ${path} is lost if the server crashes, although the server had confirmed the write`
    found.push({ id: 'export-async', cause, hint: 'Write sync.' })
  }
  return found
}

function modeOf(host: string, { path, mode }: Share, point: Point | undefined): Finding[] {
  if (point?.kind !== 'directory') return []
  const bits = Number.parseInt(point.mode, 8)
  const isOpen = (bits & 0o002) !== 0 && (bits & 0o1000) === 0
  if (!isOpen) return []
  const isDeclared = mode !== undefined && Number.parseInt(mode, 8) === bits
  const cause = `${isDeclared ? 'as declared: ' : ''}${path} has mode ${point.mode}: every user can delete the files of all others`
  const hint = 'With mode 1777 everyone can write, but delete only their own files; in hosts.yaml: mode: "1777".'
  const gravity = isDeclared ? ('note' as const) : ('risk' as const)
  return [{ host, gravity, id: 'export-mode', cause, hint, fix: onHost(`chmod 1777 ${shellQuote(path)}`) }]
}

/** `nolock` does nothing with NFSv4, and with NFSv3 it is a danger. */
export function findingsOfLocks(host: string, { mountOptions, point }: Share, mount: Mount): Finding[] {
  if (!mountOptions.includes('nolock')) return []
  const version = versionOf(mount) ?? ''
  if (version.startsWith('4')) {
    const cause = `nolock does nothing at ${point}: NFS ${version} has its locks in the protocol, and they work across hosts`
    return [{ host, gravity: 'note', id: 'nolock', cause, hint: 'It may be left out of mount_options.' }]
  }
  const cause = `nolock at ${point}: with NFS ${version} a lock of one host is not seen by the others`
  return [
    {
      host,
      gravity: 'risk',
      id: 'nolock',
      cause,
      hint: 'Write mount_options: "vers=4.2" where files are locked (SQLite, caches).',
    },
  ]
}
