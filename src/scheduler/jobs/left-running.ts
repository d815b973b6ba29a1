/** What hosts found of a launched job after its end, each in its own processes: nothing, or what did not end even by KILL. */

/** Undefined in its place: the host could not look, or was not asked. `processes`: at most 8 of `count`. */
export type LeftRunning = {
  readonly count: number
  readonly processes: readonly { readonly pid: number; readonly name: string }[]
}

const NOTHING: LeftRunning = { count: 0, processes: [] }

/** `left=0`, or `left=2,117:python3,118:sleep`. Undefined: not of this form. */
export function parseLeft(words: readonly string[]): LeftRunning | undefined {
  const word = words.find((one) => one.startsWith('left='))
  const [, count, named = ''] = /^left=(\d{1,7})((?:,\d{1,10}:[\w.+-]{1,64}){0,8})$/.exec(word ?? '') ?? []
  if (count === undefined) return undefined
  const processes = named
    .split(',')
    .slice(1)
    .map((one) => ({ pid: Number(one.split(':')[0]), name: one.split(':')[1] ?? '' }))
  return { count: Number(count), processes }
}

type Bundle = { readonly host: string; readonly left: LeftRunning | undefined; readonly hasBegun: boolean }

/** Sentences for people, in the order of hosts: `nothing left on m1 m2`, `left on m3: python3 (pid 117) and 2 more`. */
export function formatLeft(bundles: readonly Bundle[]): readonly string[] {
  const hosts = [...Map.groupBy(bundles, ({ host }) => host)].map(([host, own]) => {
    const known = own.map(({ left, hasBegun }) => (hasBegun ? left : NOTHING))
    const left = known.flatMap((one) => one ?? [])
    const processes = left.flatMap((one) => one.processes)
    const more = left.reduce((sum, { count }) => sum + count, 0) - processes.length
    const names = processes.map(({ pid, name }) => `${name} (pid ${pid})`).join(', ')
    return { host, names: `${names}${more > 0 ? ` and ${more} more` : ''}`, isUnknown: known.includes(undefined) }
  })
  const clean = hosts.filter(({ names, isUnknown }) => names === '' && !isUnknown)
  const unknown = hosts.filter(({ isUnknown }) => isUnknown)
  const listed = (of: readonly { readonly host: string }[]) => of.map(({ host }) => host).join(' ')
  return [
    ...hosts.flatMap(({ host, names }) => (names === '' ? [] : [`left on ${host}: ${names}`])),
    ...(clean.length === 0 ? [] : [`nothing left on ${listed(clean)}`]),
    ...(unknown.length === 0 ? [] : [`could not check what is left on ${listed(unknown)}`]),
  ]
}
