/** The example of a program that asks Muster for its points is a program of real Optuna, but for one line. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { pythonEnvironment } from '../cluster/python-environment.ts'

const canRun = requirement('python environments')
const OBJECTIVE = join(import.meta.dirname, '../../../docs/examples/objective.py')

it.skipIf(!canRun)('objective.py runs under real Optuna with `import optuna`', { timeout: 300_000 }, async () => {
  const program = readFileSync(OBJECTIVE, 'utf8').replace(/^import muster_study as optuna.*$/m, 'import optuna')
  const directory = mkdtempSync(join(tmpdir(), 'muster-objective-'))
  try {
    writeFileSync(join(directory, 'objective.py'), `${program}\nprint(len(study.trials), study.best_value < 1)\n`)
    const python = join(await pythonEnvironment('optuna'), 'venv', 'bin', 'python')
    const printed = execFileSync(python, ['objective.py'], { cwd: directory, encoding: 'utf8', stdio: 'pipe' })
    expect(printed).toMatch(/^\{'x': .*\} 0\.\d+\n100 True\n$/)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
})
