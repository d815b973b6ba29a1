/**
 * A top-level key of hosts.yaml that belongs to an area of bring-up: how it is read, and what it means once all hosts and groups
 * are known. The inventory knows no area by name; whoever loads it passes the sections.
 */
import type { Host } from './host.ts'
import type { Inventory } from './inventory.ts'
import type { Field, Located } from './yaml-reader.ts'

export interface SectionContext {
  readonly hosts: readonly Host[]
  /** The hosts of a set; a set without hosts is a problem. */
  expand(set: Located<string>): readonly string[]
  /** The same; absent: all hosts. */
  expandOrAll(set: Located<string> | undefined): readonly string[]
  /** The name; a problem where the file has no such host. */
  knownHost(name: Located<string>): string
  /** What another section of the file says; undefined where it is absent. */
  other<T>(section: Section<T>): T | undefined
  /** Reports a problem; `offset`: where it is in the text. */
  fail(offset: number, message: string): void
}

export type Section<T = unknown> = {
  readonly key: string
  /** For the parser and for docs/hosts-yaml.md. */
  readonly field: Field
  /** Undefined: nothing is declared. */
  resolve(raw: never, context: SectionContext): T | undefined
}

export function defineSection<Raw, T>(
  key: string,
  field: Field<Raw>,
  resolve: (raw: Raw, context: SectionContext) => T | undefined,
): Section<T> {
  return { key, field, resolve }
}

/** What hosts.yaml says in a section; undefined where it is absent. */
export function sectionOf<T>({ sections }: Pick<Inventory, 'sections'>, { key }: Section<T>): T | undefined {
  // Only `resolve` of the same section puts a value under its key.
  return sections?.get(key) as T | undefined
}
