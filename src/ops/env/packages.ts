/** Packages of an environment by the names of their files. Pure. */

export type Package = {
  readonly name: string
  readonly version: string
  readonly by: 'pip' | 'conda'
  /** conda's build string. */
  readonly build?: string
}

/** Names as PEP 503 compares them. */
export function normalName(name: string): string {
  return name
    .toLowerCase()
    .replace(/[-_.]+/g, '-')
    .replace(/^-/, '')
}

export function isName(text: string): boolean {
  return /^[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?$/.test(text) && text.length <= 200
}

/** PEP 440, or conda's; nothing that a shell or pip could misread. */
export function isVersion(text: string): boolean {
  return /^[A-Za-z0-9][\w.+!~-]*$/.test(text) && text.length <= 200
}

/** `numpy-1.26.4.dist-info`; `old_thing-1.0-py3.11.egg-info`. Undefined: no package. */
export function packageOfDist(directory: string): Package | undefined {
  const match = /^(.+?)-(\d[^-]*)(?:\.dist-info|(?:-py[\d.]+)?\.egg-info)$/.exec(directory)
  const [, name = '', version = ''] = match ?? []
  // A tilde marks a directory that pip could not remove completely.
  return isName(name) && isVersion(version) ? { name, version, by: 'pip' } : undefined
}

/** `numpy-1.26.4-py311h64a7726_0`: name, version and build, of which only the name may have dashes in it. */
export function packageOfCondaFile(stem: string): Package | undefined {
  const match = /^(.+)-([^-]+)-([^-]+)$/.exec(stem)
  const [, raw = '', version = '', build = ''] = match ?? []
  // Such as __glibc and _libgcc_mutex.
  const name = raw.replace(/^_+/, '')
  return isName(name) && isVersion(version) && isVersion(build) ? { name: raw, version, by: 'conda', build } : undefined
}

/** `1.26.4` → [1, 26, 4]; what is not a number ends it. */
function numbersOf(version: string): number[] {
  return (/^(?:\d+!)?(\d+(?:\.\d+)*)/.exec(version)?.[1] ?? '').split('.').map(Number)
}

/** The first part in which two versions differ; `other`: behind these, or they are no numbers. */
export function differingPart(one: string, two: string): 'major' | 'minor' | 'other' {
  const [left, right] = [numbersOf(one), numbersOf(two)]
  if (left[0] !== right[0]) return 'major'
  return (left[1] ?? 0) === (right[1] ?? 0) ? 'other' : 'minor'
}
