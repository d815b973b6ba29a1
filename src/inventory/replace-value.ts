/** Replaces a value of a YAML document, while aliases elsewhere keep the value that they had: its anchor moves to the first of them. */
import { type Alias, type Document, isAlias, isNode, type Node, visit } from 'yaml'

type Replaced = Node & { readonly range?: [number, number, number] | null }

/** Anchors and tags in front of a value, on its line or the one before. */
const PROPERTIES = /(?:[&!][^\s,[\]{}]*\s+)+$/

/** Every alias outside a value that means it, or something in it. */
function aliasesInto(document: Document, value: Node): readonly { readonly alias: Alias; readonly target: Node }[] {
  const inside = new Set<unknown>()
  visit(value, { Node: (_, node) => void inside.add(node) })
  const found: { alias: Alias; target: Node }[] = []
  visit(document, {
    Alias(_, alias) {
      const target = inside.has(alias) ? undefined : alias.resolve(document)
      if (target !== undefined && inside.has(target)) found.push({ alias, target })
    },
  })
  return found
}

const anchorsIn = (node: Node): readonly string[] => {
  const anchors: string[] = []
  visit(node, { Value: (_, { anchor }) => void (anchor !== undefined && anchors.push(anchor)) })
  return anchors
}

/** Where a value begins in the text, with its anchor and tag. */
const startOf = (text: string, { range }: Replaced): number => {
  const start = range?.[0] ?? 0
  return start - (PROPERTIES.exec(text.slice(0, start))?.[0].length ?? 0)
}

/** Changes no other byte. Undefined: not possible in this way, as for a moved value of several lines. */
export function replaceInText(text: string, document: Document, value: Replaced, wanted: string): string | undefined {
  if (!value.range) return undefined
  const edits = [{ from: startOf(text, value), to: value.range[1], inserted: wanted }]
  const moved = new Set<string>()
  for (const { alias, target } of aliasesInto(document, value)) {
    if (moved.has(alias.source)) continue
    const { range } = target as Replaced
    const place = (alias as Replaced).range
    if (!range || !place) return undefined
    const source = text.slice(startOf(text, target), range[1])
    if (source.includes('\n')) return undefined
    for (const anchor of anchorsIn(target)) moved.add(anchor)
    edits.push({ from: place[0], to: place[1], inserted: source })
  }
  return edits
    .toSorted((a, b) => b.from - a.from)
    .reduce((sum, { from, to, inserted }) => sum.slice(0, from) + inserted + sum.slice(to), text)
}

/** The same within a document, for `document.toString()`: aliases get what they meant. To be called before the value is replaced. */
export function keepAliasedValues(document: Document, value: unknown): void {
  if (!isNode(value) || isAlias(value)) return
  const nodes = new Map<Alias, Node>()
  const moved = new Set<string>()
  for (const { alias, target } of aliasesInto(document, value)) {
    if (moved.has(alias.source)) continue
    const node = document.createNode(target.toJS(document, { maxAliasCount: -1 }))
    node.anchor = alias.source
    moved.add(alias.source)
    nodes.set(alias, node)
  }
  visit(document, { Alias: (_, alias) => nodes.get(alias) })
}
