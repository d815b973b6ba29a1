/** The man pages: one for each verb, with all of its help, and nothing that roff would act on. */
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { renderManPages } from '../../scripts/generate-man.ts'
import { CONSOLE } from '../../src/cli/console/entry.ts'
import { VERBS } from '../../src/cli/verbs.ts'
import { requirement } from '../support/requirements.ts'

const pages = await renderManPages('1.2.3')
const hasGroff = requirement('groff')

describe('man pages', () => {
  it('are muster.1 and a page for each verb that users start', () => {
    const verbs = Object.entries(VERBS).flatMap(([name, entry]) => ('isHidden' in entry ? [] : [`muster-${name}.1`]))
    expect([...pages.keys()].sort()).toEqual(['muster.1', ...verbs].sort())
    expect(packageJson.man).toEqual([...pages.keys()].sort().map((name) => `./dist/man/${name}`))
  })

  it('name arguments, options with their choices and defaults, examples, and the verbs below a group', () => {
    const run = pages.get('muster-run.1')
    expect(run).toContain('.B \\-\\-fan\\-out <n>\nwork on at most N hosts at once (default: 64)')
    expect(run).toContain('use colours (choices: (dqauto(dq, '.replaceAll('(dq', '\\(dq'))
    expect(run).toContain('muster run all \\-\\- uptime')
    expect(pages.get('muster-job.1')).toContain('.SH "JOB CANCEL"\n')
    expect(pages.get('muster.1')).toContain('.B study\nsearch for the best parameters')
  })

  it.skipIf(!hasGroff)('are formatted without a warning, and examples keep their lines', () => {
    for (const [name, text] of pages) {
      const { stdout, stderr, status } = spawnSync('groff', ['-man', '-Tutf8', '-ww', '-P-c', '-rLL=200n'], {
        input: text,
        encoding: 'utf8',
      })
      expect([name, stderr, status]).toEqual([name, '', 0])
      if (name === 'muster.1') expect(plain(stdout)).toContain(CONSOLE.summary)
      if (name === 'muster-run.1') expect(plain(stdout)).toMatch(/^ +muster run all -- uptime +lines as they come/m)
    }
  })
})

/** Removes the overstrikes of bold and underlined text. */
const plain = (text: string): string => text.replace(/.\u0008/g, '')
