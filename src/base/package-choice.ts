/** Names and versions of distribution packages: what apt and dnf understand as exactly one package. */
import { defined } from './defined.ts'

/** A package by its name, with a version where only that one will do. */
export type PackageChoice = { readonly name: string; readonly version?: string }

// To apt, a last - removes the package and a last + installs it; it knows names such as g++ first.
const NAME = '[A-Za-z0-9][A-Za-z0-9+._-]{0,126}[A-Za-z0-9+]'
const VERSION = '[A-Za-z0-9](?:[A-Za-z0-9.+:~^_-]{0,126}[A-Za-z0-9~^])?'
const CHOICE = new RegExp(`^(${NAME})(?:=(${VERSION}))?$`)
const RECORDED = new RegExp(`^${NAME}(?::[a-z0-9-]{1,20})?$`)
const IS_VERSION = new RegExp(`^${VERSION}$`)

/** Reads `NAME` or `NAME=VERSION`; undefined: it is neither. */
export function packageChoiceOf(word: string): PackageChoice | undefined {
  const [, name, version] = CHOICE.exec(word) ?? []
  return name === undefined ? undefined : { name, ...defined({ version }) }
}

export function isPackageVersion(text: string): boolean {
  return IS_VERSION.test(text)
}

/** A name, with the architecture where it is not the host's: `libc6:i386`. */
export function isInstalledName(text: string): boolean {
  return RECORDED.test(text)
}
