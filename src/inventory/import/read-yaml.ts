/** YAML files of other tools: their mappings with keys as written, and the line of each entry for notes. */
import { isMap, isScalar, LineCounter, type Node, type Pair, type Tags, type YAMLMap } from 'yaml'
import { getOrMake } from '../../base/collections.ts'
import { messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { keyText, parseYaml } from '../yaml-reader.ts'
import type { SourceFile } from './imported-inventory.ts'

/** Keys are text, except those that YAML takes for something else, such as numbers. */
export type YamlTree = ReadonlyMap<unknown, unknown>

export type YamlSource = {
  readonly tree: YamlTree
  /** The line, from 1, of the entry under these keys, or of the last of its parents that is written there; 0: none is. */
  lineOf(...keys: readonly string[]): number
}

export const isTree = (value: unknown): value is YamlTree => value instanceof Map

/** The entries of a mapping, with their keys as text; none for anything else. */
export const entriesOf = (value: unknown): [string, unknown][] =>
  isTree(value) ? Array.from(value, ([key, each]) => [String(key), each]) : []

/** PyYAML reads `y` and `n` as text, unlike YAML 1.1. */
const withoutLetters = (tags: Tags): Tags =>
  tags.map((tag) =>
    typeof tag === 'object' && tag.tag === 'tag:yaml.org,2002:bool' && 'test' in tag && tag.test !== undefined
      ? { ...tag, test: new RegExp(`(?!^.$)${tag.test.source}`) }
      : tag,
  )

/** The mapping in the text, or in words why there is none. `version` 1.1: as PyYAML reads it. */
export function readYaml({ text }: Pick<SourceFile, 'text'>, version: '1.1' | '1.2' = '1.2'): YamlSource | string {
  const lineCounter = new LineCounter()
  let document: ReturnType<typeof parseYaml>
  let value: unknown
  try {
    // As in PyYAML, the last of equal keys counts; to compare them all takes minutes for a large file.
    const options = {
      version,
      customTags: withoutLetters,
      merge: true,
      uniqueKeys: false,
      lineCounter,
      prettyErrors: true,
    } as const
    document = parseYaml(text, { ...options, logLevel: 'silent' })
    const [error] = document.errors
    if (error) throw error
    value = document.toJS({ maxAliasCount: 100, mapAsMap: true })
  } catch (error) {
    return printable(messageOf(error).split('\n')[0] ?? '').replace(/:$/, '')
  }
  if (!isTree(value)) return 'it is not a mapping'

  const pairs = new Map<YAMLMap, ReadonlyMap<string | undefined, Pair>>()
  const pairsOf = (map: YAMLMap) =>
    getOrMake(pairs, map, () => new Map(map.items.map((pair) => [keyText(pair.key), pair])))
  const lineOf = (...keys: readonly string[]): number => {
    let node: unknown = document.contents
    let line = 0
    for (const key of keys) {
      const pair = isMap(node) ? pairsOf(node).get(key) : undefined
      if (pair === undefined) break
      const offset = isScalar(pair.key) ? (pair.key as Node).range?.[0] : undefined
      if (offset !== undefined) line = lineCounter.linePos(offset).line
      node = pair.value
    }
    return line
  }
  return { tree: value, lineOf }
}
