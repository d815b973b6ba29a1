/** A reporter for vitest: what came of every test file, as JSON in the file that MUSTER_TEST_RESULTS names, for vitest-run.ts. */
import { writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { Reporter, TestModule, TestSpecification } from 'vitest/node'
import type { FileResult, Results } from './vitest-run.ts'

type StrayError = { readonly message: string; readonly VITEST_TEST_PATH?: string }

// biome-ignore lint/style/noDefaultExport: vitest takes a reporter by its default export
export default class ResultsReporter implements Reporter {
  #planned: string[] = []

  onTestRunStart(specifications: readonly TestSpecification[]): void {
    this.#planned = specifications.map(({ moduleId }) => pathOf(moduleId))
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const files = new Map<string, FileResult>()
    // A file whose worker never came up is in no list of results.
    for (const path of this.#planned) files.set(path, { path, state: 'missing', tests: [] })
    for (const module of modules) {
      const tests = [...module.children.allTests()].map((test) => ({ name: test.fullName, state: test.result().state }))
      const path = pathOf(module.moduleId)
      files.set(path, { path, state: module.state(), tests })
    }
    const strayErrors = (errors as readonly StrayError[]).map(({ message, VITEST_TEST_PATH: file }) => ({
      message,
      ...(file === undefined ? {} : { path: pathOf(file) }),
    }))
    const results: Results = { files: [...files.values()], strayErrors }
    writeFileSync(process.env.MUSTER_TEST_RESULTS ?? '', JSON.stringify(results))
  }
}

function pathOf(file: string): string {
  return relative(process.cwd(), file)
}
