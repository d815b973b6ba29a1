/** What is mounted (/proc/mounts never waits for a server), the names of mount units, and lines of fstab. Pure. */

export type Mount = {
  readonly source: string
  readonly point: string
  readonly type: string
  readonly options: readonly string[]
}

export function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line) => {
    const [source, point, type, options] = line.split(' ')
    if (source === undefined || point === undefined || type === undefined || options === undefined) return []
    return [{ source: plain(source), point: plain(point), type, options: options.split(',') }]
  })
}

/** The one that is seen at a directory: the last that was mounted there. */
export function mountAt(mounts: readonly Mount[], point: string): Mount | undefined {
  return mounts.findLast((mount) => mount.point === point)
}

export function isNfs({ type }: Mount): boolean {
  return type === 'nfs' || type === 'nfs4'
}

export function optionOf(options: readonly string[], name: string): string | undefined {
  return options.findLast((option) => option.startsWith(`${name}=`))?.slice(name.length + 1)
}

/** Whether it is this directory of this server, also where it was mounted by another name of the server. */
export function isMountOf(mount: Mount, server: string, path: string): boolean {
  const at = mount.source.lastIndexOf(':/')
  if (!isNfs(mount) || at < 0 || trimmed(mount.source.slice(at + 1)) !== trimmed(path)) return false
  return mount.source.slice(0, at) === server || optionOf(mount.options, 'addr') === server
}

/** Declared options that the mount does not have, as far as /proc/mounts shows them. */
export function missingOptions(mount: Mount, declared: readonly string[]): string[] {
  const version = optionOf(declared, 'vers') ?? optionOf(declared, 'nfsvers')
  const has = optionOf(mount.options, 'vers') ?? ''
  const isOther = version !== undefined && has !== version && !has.startsWith(`${version}.`)
  const flags = ['ro', 'soft'].filter((flag) => declared.includes(flag) && !mount.options.includes(flag))
  return [...(isOther ? [`vers=${version}`] : []), ...flags]
}

/** `4.2`; undefined where it does not say. */
export function versionOf({ options }: Mount): string | undefined {
  return optionOf(options, 'vers')
}

/** As systemd-octal(1) `--path --suffix=mount` names it. */
export function unitName(point: string): string {
  const path = point.split('/').filter(Boolean).join('/')
  if (path === '') return '-.mount'
  const hex = (byte: number) => `\\x${byte.toString(16).padStart(2, '0')}`
  const name = [...Buffer.from(path)].map((byte, index) => {
    const character = String.fromCharCode(byte)
    if (character === '/') return '-'
    return /[A-Za-z0-9:_.]/.test(character) && !(index === 0 && character === '.') ? character : hex(byte)
  })
  return `${name.join('')}.mount`
}

/** A line of fstab(5). `_netdev,nofail`: the machine starts without the server. */
export function fstabLine(source: string, point: string, options: string): string {
  return `${octal(source)} ${octal(point)} nfs ${options},_netdev,nofail 0 0`
}

/** Where a line of fstab(5) mounts something. */
export function pointOf(line: string): string | undefined {
  const point = /^[^#\s]\S*\s+(\/\S*)/.exec(line)?.[1]
  return point === undefined ? undefined : plain(point)
}

export function trimmed(path: string): string {
  return path.length > 1 ? path.replace(/(?<!\/)\/+$/, '') : path
}

function octal(word: string): string {
  return word.replace(/[\s\\#]/g, (character) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
}

function plain(word: string): string {
  return word.replace(/\\([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
}
