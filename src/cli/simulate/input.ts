/** What the simulations take: policies, and files of traces, plain or gzip. */

import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { InvalidArgumentError, Option } from 'commander'
import { fileReason, MusterError } from '../../base/errors.ts'
import { isPolicyName, POLICIES } from '../../scheduler/policies/policies.ts'
import { offering } from '../command-line/options.ts'

/** Other words for the default. */
const DEFAULT_ALIASES: readonly string[] = ['default', 'muster', 'ours']

export const POLICY_NAMES = Object.keys(POLICIES).filter(isPolicyName)

/** Its value is a list. */
export function policyOption<Name extends string>(names: readonly Name[], usual: Name): Option {
  return offering(new Option('--policy <names>', `one or more of ${names.join(', ')}`), names)
    .argParser((text) => text.split(',').map((word) => oneOf(word, names, usual)))
    .default([usual], usual)
}

export function oneOf<Name extends string>(word: string, names: readonly Name[], usual: Name): Name {
  const name = DEFAULT_ALIASES.includes(word) ? usual : names.find((known) => known === word)
  if (name === undefined) throw new InvalidArgumentError(`Unknown policy: ${word}. Policies: ${names.join(', ')}.`)
  return name
}

/** A larger file is not a trace. */
const MAX_BYTES = 512 * 2 ** 20

export async function readTrace(path: string, workingDirectory: string): Promise<string> {
  try {
    const bytes = await readFile(resolve(workingDirectory, path))
    const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
    return (isGzip ? await promisify(gunzip)(bytes, { maxOutputLength: MAX_BYTES }) : bytes).toString('utf8')
  } catch (error) {
    throw new MusterError('configuration', `cannot read ${path}: ${fileReason(error)}`, { cause: error })
  }
}

/** For JSON. */
export const rounded = (value: number | undefined, digits: number): number | undefined =>
  value === undefined ? undefined : Number(value.toFixed(digits))
