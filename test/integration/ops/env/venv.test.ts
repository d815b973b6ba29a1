/** A virtual environment that is half removed, or whose interpreter is another one: real scripts in a real shell, with a real pip. */
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Area } from '../../../../src/ops/kernel/area.ts'
import { requirement } from '../../../support/requirements.ts'
import { copyPipWheel, makeTinyWheel } from '../../../support/tiny-wheel.ts'
import { environmentArea, OneHome } from './one-home.ts'

const PYTHON = '/usr/bin/python3'
const UP = [
  'gather the wheels of requirements.txt, from ~/wheels where possible',
  `create ~/lab with ${PYTHON}`,
  'install them in ~/lab (offline)',
]
const AGAIN = UP.map((title) => title.replace(' with', ' again with'))

let here: OneHome
let area: Area
let lab: string

beforeEach(() => {
  here = new OneHome()
  lab = join(here.home, 'lab')
  const declared = `{ venv: { path: ~/lab, python: ${PYTHON}, wheels: ~/wheels, requirements: requirements.txt } }`
  area = environmentArea(declared, 'requirements.txt', 'tiny\n')
})
afterEach(() => here[Symbol.dispose]())

const titlesOf = (steps: Awaited<ReturnType<OneHome['look']>>) =>
  typeof steps === 'string' ? steps : steps.map(({ title }) => title)

describe('an interrupted removal of a virtual environment', () => {
  beforeEach(() => {
    for (const place of ['bin', 'lib/python3.11/site-packages/tiny-1.0.dist-info']) {
      mkdirSync(join(lab, place), { recursive: true })
    }
    writeFileSync(join(lab, '.muster-made'), 'venv 1\n')
    writeFileSync(join(lab, 'pyvenv.cfg'), 'home = /usr/bin\n')
    // What a half removed environment must not be taken for: a Python that runs.
    here.program('python', 'echo python 3.11.7', join(lab, 'bin'))
  })

  /** The program does this, and then everything is killed. */
  it.each([
    ['before bin goes', 'rm', '[ "$1" = -rf ] || exec /bin/rm "$@"; /bin/rm -rf "$2"'],
    ['before the packages go', 'find', ':'],
  ])('is seen where it is cut %s: up creates it anew, down removes the rest', async (_, name, text) => {
    here.program(name, `${text}\nkill -KILL $PPID`)
    expect((await here.doIt(area, 'down')).codes).toEqual([null])
    rmSync(join(here.bin, name))
    expect(readdirSync(lab)).toContain('lib')
    expect(titlesOf(await here.look(area, 'up'))).toEqual(AGAIN)
    expect(await here.doIt(area, 'down')).toEqual({ titles: ['remove ~/lab'], codes: [0], stderr: '' })
    expect(existsSync(lab)).toBe(false)
  })

  it('is seen where pyvenv.cfg is empty, as on a full disk', async () => {
    writeFileSync(join(lab, 'pyvenv.cfg'), '')
    expect(titlesOf(await here.look(area, 'up'))).toEqual(AGAIN)
  })

  it('is not Muster’s to finish without the mark', async () => {
    for (const file of ['.muster-made', 'pyvenv.cfg']) rmSync(join(lab, file))
    await expect(here.look(area, 'up')).rejects.toThrow('~/lab: it holds something else')
  })
})

describe.skipIf(!requirement('python environments'))('a real virtual environment', { timeout: 60_000 }, () => {
  const wheels = () => join(here.home, 'wheels')
  const packagesOf = (prefix: string) =>
    here
      .run(`ls ${prefix}/lib/python3.*/site-packages | grep dist-info`)
      .stdout.toString()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('pip-'))

  beforeEach(async () => {
    mkdirSync(wheels())
    copyPipWheel(wheels())
    makeTinyWheel(wheels(), 'tiny')
    expect(await here.doIt(area, 'up')).toEqual({ titles: UP, codes: [0, 0, 0], stderr: '' })
  })

  it('without pyvenv.cfg is created anew, although its python runs', async () => {
    rmSync(join(lab, 'pyvenv.cfg'))
    const steps = await here.look(area, 'up')
    expect(titlesOf(steps)).toEqual(AGAIN.slice(1))
    // With this, apply would skip the step.
    const check = typeof steps === 'string' ? undefined : steps[0]?.check
    expect(here.run(check?.script ?? '').status).toBe(1)
    expect((await here.doIt(area, 'up')).codes).toEqual([0, 0])
    expect(here.run(check?.script ?? '').status).toBe(0)
    expect(await here.look(area, 'up')).toMatch(/holds the 2 packages, and no others$/)
    expect(here.run('~/lab/bin/python -c "import tiny"').stdout.toString()).toBe('brought\n')
  })

  it('is made again, and removed, without the files that the user has put there', async () => {
    mkdirSync(join(lab, 'work'))
    writeFileSync(join(lab, 'work/thesis.txt'), 'precious')
    rmSync(join(lab, 'pyvenv.cfg'))
    const steps = await here.look(area, 'up')
    expect(typeof steps === 'string' ? steps : steps[0]?.changes).toEqual([
      '- the environment in ~/lab; other files there stay',
      '+ ~/lab',
    ])
    expect((await here.doIt(area, 'up')).codes).toEqual([0, 0])
    expect(await here.look(area, 'up')).toMatch(/holds the 2 packages, and no others$/)
    expect(readFileSync(join(lab, 'work/thesis.txt'), 'utf8')).toBe('precious')
    expect(await here.doIt(area, 'down')).toMatchObject({ codes: [0, 0], stderr: '' })
    expect(readdirSync(lab)).toEqual(['work'])
    expect(await here.look(area, 'down')).toContain('there is no environment ~/lab')
    await expect(here.look(area, 'up')).rejects.toThrow('~/lab: it holds something else')
  })

  it('whose wheels lack a package names that one, and not pip, where the index does not answer', async () => {
    // Nothing listens there.
    mkdirSync(join(here.home, '.config/pip'), { recursive: true })
    const settings = '[global]\nindex-url = http://127.0.0.1:1/simple\nretries = 0\n'
    writeFileSync(join(here.home, '.config/pip/pip.conf'), settings)
    const declared = `{ venv: { path: ~/lab, python: ${PYTHON}, wheels: ~/wheels, requirements: requirements.txt } }`
    const { codes, stderr } = await here.doIt(environmentArea(declared, 'requirements.txt', 'tiny\nabsent\n'), 'up')
    expect(codes[0]).toBe(1)
    expect(stderr).toContain(
      'cannot fetch absent: it is not in ~/wheels (wheels: in hosts.yaml), and the package index',
    )
  })

  it.each([
    ['requirements.txt', (hash: string) => `tiny==1.0 --hash=sha256:${hash}\n`],
    [
      'pylock.toml',
      (hash: string) =>
        `lock-version = "1.0"\n[[packages]]\nname = "tiny"\nversion = "1.0"\nmarker = "python_version > '3'"\n[[packages.wheels]]\nurl = "https://x/tiny-1.0-py3-none-any.whl"\nhashes = { sha256 = "${hash}" }\n`,
    ],
  ] as const)('needs no wheel of pip where %s has hashes and none of pip, as Python has a pip', async (file, textOf) => {
    expect((await here.doIt(area, 'down')).codes).toEqual([0, 0])
    here.run('rm ~/wheels/pip-*.whl')
    const hash = createHash('sha256')
      .update(readFileSync(join(wheels(), 'tiny-1.0-py3-none-any.whl')))
      .digest('hex')
    const declared = `{ venv: { path: ~/lab, python: ${PYTHON}, wheels: ~/wheels, requirements: ${file} } }`
    const own = environmentArea(declared, file, textOf(hash))
    // Nothing listens there.
    const offline = { PIP_INDEX_URL: 'http://127.0.0.1:1/simple', PIP_RETRIES: '0' }
    const up = await here.doIt(own, 'up', offline)
    expect([up.codes, up.stderr]).toEqual([[0, 0, 0], ''])
    expect(here.run('~/lab/bin/python -c "import tiny"').stdout.toString()).toBe('brought\n')
    expect(await here.look(own, 'up')).toMatch(/holds the package, and no others$/)
    // As on Debian without python3-venv: the pip of python3-pip fills it.
    here.run('rm -r ~/lab')
    here.program('python3', `case "$*" in "-m venv /"*) exit 1;; esac\nexec ${PYTHON} "$@"`)
    const bare = environmentArea(declared.replace(PYTHON, join(here.bin, 'python3')), file, textOf(hash))
    const again = await here.doIt(bare, 'up', offline)
    expect([again.codes.every((code) => code === 0), again.stderr]).toEqual([true, ''])
    expect(existsSync(join(lab, 'bin', 'pip'))).toBe(false)
    expect(here.run('~/lab/bin/python -c "import tiny"').stdout.toString()).toBe('brought\n')
  })

  it('whose interpreter belongs elsewhere is not touched, nor is what is there', async () => {
    const other = join(here.home, 'other')
    makeTinyWheel(wheels(), 'innocent')
    const made = here.run(
      `${PYTHON} -m venv --without-pip ~/other && ${PYTHON} -m zipfile -e ~/wheels/innocent-*.whl ~/other/lib/python3.*/site-packages`,
    )
    expect(made.status).toBe(0)
    here.program('python', `exec ${other}/bin/python "$@"`, join(here.home, 'bin'))
    here.run('mv ~/bin/python ~/lab/bin/python; rm -r ~/lab/lib/python3.*/site-packages/tiny-1.0.dist-info')
    expect(await here.doIt(area, 'up')).toEqual({
      titles: ['install them in ~/lab (offline)'],
      codes: [1],
      stderr: `${lab}/bin/python does not run, or installs outside of ${lab}: nothing was changed\n`,
    })
    expect([packagesOf(other), packagesOf(lab)]).toEqual([['innocent-1.0.dist-info'], []])
  })

  it('that the user made and another host filled gets all packages again, and then is this host’s', async () => {
    rmSync(join(lab, '.muster-made'))
    const [note = ''] = globSync(join(here.home, '.cache/muster/env/*/filled-by'))
    expect(readFileSync(note, 'utf8')).toBe('m1\n')
    writeFileSync(note, 'm3\n')
    const module = globSync(join(lab, 'lib/python3.*/site-packages/tiny.py'))[0] ?? ''
    writeFileSync(module, 'print("evil")\n')
    const [step] = await here.look(area, 'up')
    expect(step).toMatchObject({ changes: ['~ ~/lab: all packages, because m3 chose them'] })
    expect((await here.doIt(area, 'up')).codes).toEqual([0])
    expect([readFileSync(note, 'utf8'), readFileSync(module, 'utf8')]).toEqual(['m1\n', "print('brought')\n"])
    expect(await here.look(area, 'up')).toMatch(/holds the 2 packages, and no others$/)
  })

  it('is filled whatever directory and interpreter the settings of pip name', async () => {
    here.run('rm -r ~/lab/lib/python3.*/site-packages/tiny*; mkdir -p ~/.config/pip')
    writeFileSync(join(here.home, '.config/pip/pip.conf'), `[global]\ntarget = ${here.home}/configured\n`)
    const { codes } = await here.doIt(area, 'up', { PIP_PREFIX: `${here.home}/named`, PIP_PYTHON: PYTHON })
    expect([codes, packagesOf(lab)]).toEqual([[0], ['tiny-1.0.dist-info']])
    expect(readdirSync(here.home)).not.toEqual(expect.arrayContaining(['configured']))
    expect(readdirSync(here.home)).not.toEqual(expect.arrayContaining(['named']))
  })
})
