/** The directory of Muster's package.json, from the sources and from the bundled program alike, which lie at other depths. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

export function packageRoot(): string {
  let directory = import.meta.dirname
  while (!existsSync(join(directory, 'package.json')) && directory !== dirname(directory))
    directory = dirname(directory)
  return directory
}
