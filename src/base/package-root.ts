/** The directory of Muster's package.json, for the sources and for the bundled program, which are at different depths. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

export function packageRoot(): string {
  let directory = import.meta.dirname
  while (!existsSync(join(directory, 'package.json')) && directory !== dirname(directory))
    directory = dirname(directory)
  return directory
}
