/** The command line that starts this program again, from any directory. */
import { join } from 'node:path'
import { packageRoot } from '../../base/package-root.ts'

export function ownCommand(): readonly string[] {
  const main = join(packageRoot(), import.meta.filename.endsWith('.ts') ? 'src/main.ts' : 'dist/main.js')
  const options = process.execArgv.filter((option) => !option.startsWith('--inspect'))
  const whole = options.map((option, index) =>
    options[index - 1] === '--import' && /^[a-z@]/.test(option) && !option.startsWith('file:')
      ? import.meta.resolve(option)
      : option,
  )
  return [process.execPath, ...whole, main]
}
