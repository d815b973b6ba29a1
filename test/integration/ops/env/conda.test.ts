/** A conda environment made and taken away by the real scripts in a real shell, with a stand-in for conda that notes its arguments. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { unpackPrefix } from '../../../../src/ops/env/conda-scripts.ts'
import type { Area, ChangeDirection } from '../../../../src/ops/kernel/area.ts'
import { installConda, makeCondaChannel } from '../../../support/real-conda.ts'
import { requirement } from '../../../support/requirements.ts'
import { environmentArea, OneHome } from './one-home.ts'

let here: OneHome
let home: string

beforeEach(() => {
  here = new OneHome()
  home = here.home
})
afterEach(() => here[Symbol.dispose]())

const areaOf = (yaml: string, file: string, text: string): Area =>
  environmentArea(`{ conda: ${yaml.replace('{', `{ file: ${JSON.stringify(file)},`)} }`, file, text)

/** Notes its arguments and what it was to read, and makes the prefix that stands behind -p. */
const conda = (end = 'exit 0') => `echo "\${0##*/} $*" > ~/said
for word; do case $before in -p) p=$word;; -f | --file) cp "$word" ~/read;; esac; before=$word; done
[ ! -e "$p" ] || exit 9
mkdir -p "$p/conda-meta" && : > "$p/conda-meta/history" && echo '{}' > "$p/conda-meta/numpy-1.26.4-py311_0.json"
${end}`
const said = () =>
  readFileSync(join(home, 'said'), 'utf8')
    .replaceAll(home, '~')
    .replace(/-f .*\/|--file .*\//, (word) => `${word.split(' ')[0]} `)

const YAML = 'name: other\ndependencies: [numpy]\n'
const EXPLICIT = '@EXPLICIT\nhttps://example.org/numpy-1.26.4-py311_0.conda\n'

describe('a conda environment', () => {
  it.each([
    ['micromamba', 'environment.yml', YAML, 'create -y -q -p ~/.conda/envs/lab -f environment.yml'],
    ['mamba', 'environment.yaml', YAML, 'env create -q -p ~/.conda/envs/lab -f environment.yml'],
    ['conda', 'environment.yml', YAML, 'env create -q -p ~/.conda/envs/lab -f environment.yml'],
    ['micromamba', 'linux-64.lock', EXPLICIT, 'create -y -q -p ~/.conda/envs/lab -f packages.txt'],
    ['conda', 'spec.txt', EXPLICIT, 'create -y -q -p ~/.conda/envs/lab --file packages.txt'],
  ])('is created by %s from %s, and then leaves nothing to do', async (tool, file, text, expected) => {
    here.program(tool, conda())
    const area = areaOf('{ name: lab }', file, text)
    expect(await here.doIt(area, 'up')).toEqual({
      titles: [`create ~/.conda/envs/lab from ${file}`],
      codes: [0],
      stderr: '',
    })
    expect(said()).toBe(`${tool} ${expected}\n`)
    expect(readFileSync(join(home, 'read'), 'utf8')).toBe(text)
    expect(await here.look(area, 'up')).toBe(`the other hosts follow it: ${home}/.conda/envs/lab`)
    expect((await here.doIt(area, 'down')).codes).toEqual([0])
    expect(readdirSync(join(home, '.conda/envs'))).toEqual([])
    expect(await here.look(area, 'down')).toBe('it is not there')
  })

  it('that another host sent is made again on the host that is followed from now on', async () => {
    here.program('conda', conda())
    const area = areaOf('{ name: lab }', 'environment.yml', YAML)
    expect((await here.doIt(area, 'up')).codes).toEqual([0])
    const prefix = join(home, '.conda/envs/lab')
    // As a copy leaves it.
    writeFileSync(join(prefix, '.muster-made'), 'conda\n')
    writeFileSync(join(prefix, 'sent'), '')
    mkdirSync(`${prefix}.muster-before`)
    await expect(here.look(environmentArea('{ conda: { name: lab } }', 'none', ''), 'up')).rejects.toThrow(
      `${prefix} was copied from another host`,
    )
    const [step, ...more] = await here.look(area, 'up')
    expect([step, more]).toMatchObject([{ changes: [`~ ${prefix}: all of it, because another host made it`] }, []])
    expect((await here.doIt(area, 'up')).codes).toEqual([0])
    expect([existsSync(join(prefix, 'sent')), existsSync(`${prefix}.muster-before`)]).toEqual([false, true])
    expect(await here.look(area, 'up')).toBe(`the other hosts follow it: ${prefix}`)
  })

  it('is created at the declared prefix, by the program that an installer put there', async () => {
    here.program('mamba', conda(), join(home, 'miniforge3/bin'))
    here.program('conda', conda(), join(home, 'miniforge3/bin'))
    expect((await here.doIt(areaOf('{ name: lab, prefix: "~/of mine" }', 'e.yml', YAML), 'up')).codes).toEqual([0])
    expect(said()).toBe('mamba env create -q -p ~/of mine -f environment.yml\n')
    expect(readFileSync(join(home, 'of mine/.muster-made'), 'utf8')).toMatch(/^conda [0-9a-f]{16}\n$/)
  })

  it('gets what pip installs, whatever directory and interpreter the settings of pip name', async () => {
    here.program('conda', conda('env | grep ^PIP_ > ~/pip; exit 0'))
    const settings = {
      PIP_TARGET: '/t',
      PIP_PREFIX: '/p',
      PIP_PYTHON: '/usr/bin/python3',
      PIP_USER: '1',
      PIP_INDEX_URL: 'i',
    }
    expect((await here.doIt(areaOf('{ name: lab }', 'e.yml', YAML), 'up', settings)).codes).toEqual([0])
    const seen = readFileSync(join(home, 'pip'), 'utf8').trimEnd().split('\n').sort()
    expect(seen).toEqual(['PIP_INDEX_URL=i', 'PIP_USER=0'])
  })

  it('leaves nothing behind if it cannot be created, and says why', async () => {
    const area = areaOf('{ name: lab }', 'environment.yml', YAML)
    await expect(here.look(area, 'up')).rejects.toThrow('there is no micromamba, mamba or conda')
    here.program('conda', conda('echo "nothing provides numpy" >&2; exit 1'))
    expect(await here.doIt(area, 'up')).toMatchObject({ codes: [1], stderr: 'nothing provides numpy\n' })
    expect(readdirSync(join(home, '.conda/envs'))).toEqual([])
  })

  it('that was created only in part is created again, or removed', async () => {
    const area = areaOf('{ name: lab }', 'environment.yml', YAML)
    const half = async () => {
      here.program('conda', conda('kill -KILL $PPID'))
      expect((await here.doIt(area, 'up')).codes).toEqual([null])
      expect(existsSync(join(home, '.conda/envs/lab/conda-meta'))).toBe(true)
      here.program('conda', conda())
    }
    await half()
    expect((await here.doIt(area, 'down')).titles).toEqual([`remove ${home}/.conda/envs/lab, which is incomplete`])
    expect(readdirSync(join(home, '.conda/envs'))).toEqual([])
    await half()
    expect((await here.doIt(area, 'up')).codes).toEqual([0])
    expect(await here.look(area, 'up')).toMatch(/^the other hosts follow it/)
  })
})

describe('the prefix of another host', () => {
  const envs = () => join(home, 'micromamba/envs')
  const prefix = () => join(envs(), 'lab')
  const make = (path: string, mark?: string) => {
    mkdirSync(join(path, 'conda-meta'), { recursive: true })
    writeFileSync(join(path, 'conda-meta/own.json'), '{}')
    if (mark !== undefined) writeFileSync(join(path, '.muster-made'), mark)
  }
  /** `more`: shell in the directory of what the host sends. */
  const take = (isReplaced: boolean, more = ':') => {
    const parcel = join(home, '.cache/muster/env/muster-1')
    const packed = here.run(`mkdir -p ${parcel} ~/sent/conda-meta && cd ~/sent && : > conda-meta/sent.json && ${more}
tar -cf ${parcel}/prefix.tar . && printf %s ${prefix()} > ${parcel}/prefix.path`)
    if (packed.status !== 0) throw new Error(`${packed.stderr}`)
    const { status, stderr } = here.run(unpackPrefix(prefix(), parcel, 'm3', isReplaced).script)
    return { status, stderr: `${stderr}` }
  }
  const has = (path: string) => readdirSync(join(path, 'conda-meta'))

  it.each<[string, () => void]>([
    ['nothing', () => {}],
    ['an empty directory', () => mkdirSync(prefix(), { recursive: true })],
    ['a copy that Muster made', () => make(prefix(), 'conda\n')],
  ])('takes the place of %s', (_, state) => {
    state()
    expect(take(existsSync(prefix()))).toEqual({ status: 0, stderr: '' })
    expect([readdirSync(envs()), has(prefix())]).toEqual([['lab'], ['sent.json']])
    expect(readFileSync(join(prefix(), '.muster-made'), 'utf8')).toBe('conda\n')
  })

  it("takes the place of the user's own one, which is kept beside it", () => {
    make(prefix())
    expect(take(true)).toEqual({ status: 0, stderr: '' })
    expect([has(prefix()), has(`${prefix()}.muster-before`)]).toEqual([['sent.json'], ['own.json']])
  })

  it.each<[string, () => void, string]>([
    [
      'files of the user',
      () => {
        mkdirSync(prefix(), { recursive: true })
        writeFileSync(join(prefix(), 'results.csv'), '')
      },
      'something else',
    ],
    [
      'a link to files of the user',
      () => {
        mkdirSync(envs(), { recursive: true })
        symlinkSync(home, prefix())
      },
      'something else',
    ],
    [
      'a link that leads nowhere',
      () => {
        mkdirSync(envs(), { recursive: true })
        symlinkSync('nowhere', prefix())
      },
      'something else',
    ],
    [
      'a virtual environment that Muster made',
      () => {
        mkdirSync(prefix(), { recursive: true })
        writeFileSync(join(prefix(), '.muster-made'), 'venv 0123456789abcdef\n')
      },
      'something else',
    ],
    ['a conda environment that the plan does not name', () => make(prefix()), 'another conda environment'],
  ])('is not unpacked where there is %s', (_, state, what) => {
    state()
    const before = `${here.run(`find ${envs()} | sort`).stdout}`
    expect(take(false)).toEqual({
      status: 1,
      stderr: expect.stringContaining(`${prefix()}: it holds ${what}. Move it`),
    })
    expect(`${here.run(`find ${envs()} | sort`).stdout}`).toBe(before)
  })

  it.each([
    ['a mark of its own', 'echo conda 0123456789abcdef > .muster-made'],
    ['a link in place of the mark', 'ln -s "$HOME/mine" .muster-made'],
    ['a directory in place of the mark', 'mkdir .muster-made'],
    ['names of Muster below it', 'mkdir -p a/b.muster-before && : > a/.muster-made && : > a/b.muster-half'],
  ])('counts as copied, although it has %s', (_, more) => {
    writeFileSync(join(home, 'mine'), 'mine')
    expect(take(false, more)).toEqual({ status: 0, stderr: '' })
    expect(readFileSync(join(prefix(), '.muster-made'), 'utf8')).toBe('conda\n')
    expect(`${here.run(`find ${envs()} -name '*.muster*'`).stdout}`).toBe(`${prefix()}/.muster-made\n`)
    expect(readFileSync(join(home, 'mine'), 'utf8')).toBe('mine')
  })
})

describe('whatever there is of a conda environment', () => {
  it('leaves nothing to do after up or down', async () => {
    here.program('conda', conda())
    const area = areaOf('{ name: lab }', 'environment.yml', YAML)
    const envs = join(home, '.conda/envs')
    const prefix = (name: string, mark: string | undefined) => {
      mkdirSync(join(envs, name, 'conda-meta'), { recursive: true })
      writeFileSync(join(envs, name, 'conda-meta/history'), '')
      if (mark !== undefined) writeFileSync(join(envs, mark), 'conda\n')
    }
    const states = {
      none: () => {},
      empty: () => mkdirSync(join(envs, 'lab')),
      half: () => prefix('lab', 'lab.muster-half'),
      noted: () => writeFileSync(join(envs, 'lab.muster-half'), 'conda\n'),
      made: () => prefix('lab', 'lab/.muster-made'),
      lost: () => {
        mkdirSync(join(envs, 'lab/bin'), { recursive: true })
        writeFileSync(join(envs, 'lab/.muster-made'), 'conda\n')
      },
      foreign: () => prefix('lab', undefined),
    }
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.values(states)),
        fc.boolean(),
        fc.array(fc.constantFrom<ChangeDirection>('up', 'down'), { minLength: 1, maxLength: 3 }),
        async (state, isOldKept, directions) => {
          rmSync(envs, { recursive: true, force: true })
          mkdirSync(envs, { recursive: true })
          if (isOldKept) prefix('lab.muster-before', undefined)
          state()
          for (const direction of directions) {
            const steps = await here.look(area, direction)
            if (typeof steps !== 'string') expect((await here.doIt(area, direction)).codes).toEqual(steps.map(() => 0))
            expect(await here.look(area, direction)).toBeTypeOf('string')
          }
        },
      ),
      { numRuns: 20 },
    )
  })
})

describe.skipIf(!requirement('conda of PyPI'))('a real conda', () => {
  let tools: string
  beforeAll(() => {
    tools = mkdtempSync(join(tmpdir(), 'muster-real-conda-'))
    installConda(tools)
    makeCondaChannel(join(tools, 'channel'))
  })
  afterAll(() => rmSync(tools, { recursive: true, force: true }))
  beforeEach(() => {
    here.program('conda', `exec '${tools}/bin/conda' "$@"`)
    writeFileSync(join(home, '.condarc'), `add_pip_as_python_dependency: false\npkgs_dirs: [${home}/pkgs]\n`)
  })
  const yaml = (...names: readonly string[]) =>
    `name: other\nchannels: ["file://${tools}/channel", nodefaults]\ndependencies: [${names.join(', ')}]\n`

  it.each(['environment.yml', 'explicit.txt'])('creates it from %s, and does not ask again', async (file) => {
    const isYaml = file.endsWith('.yml')
    const text = isYaml ? yaml('lab-tool') : readFileSync(join(tools, 'channel', file), 'utf8')
    const area = areaOf('{ name: lab }', file, text)
    expect(await here.doIt(area, 'up')).toMatchObject({ codes: [0], stderr: '' })
    const prefix = join(home, '.conda/envs/lab')
    expect(`${here.run(`${prefix}/bin/lab-tool`).stdout}`).toBe(`${prefix}\n`)
    expect(readdirSync(join(prefix, 'conda-meta'))).toEqual([
      'history',
      'lab-data-1.2.0-0.json',
      'lab-tool-0.9-h1_0.json',
      expect.stringMatching(/^python-3\.\d+\.\d+-0\.json$/),
    ])
    expect(await here.look(area, 'up')).toBe(`the other hosts follow it: ${prefix}`)
    expect((await here.doIt(area, 'down')).codes).toEqual([0])
    expect(readdirSync(join(home, '.conda/envs'))).toEqual([])
  })

  it('says which packages it does not find, and leaves nothing behind', async () => {
    const area = areaOf('{ name: lab }', 'environment.yml', yaml('lab-tool', 'nowhere'))
    expect(await here.doIt(area, 'up')).toMatchObject({ codes: [1], stderr: expect.stringContaining('nowhere') })
    expect(readdirSync(join(home, '.conda/envs'))).toEqual([])
  })
})

describe('an interrupted removal', () => {
  const area = () => areaOf('{ name: lab }', 'environment.yml', YAML)
  const envs = () => join(home, 'miniforge3/envs')

  beforeEach(() => {
    for (const [name, file] of [
      ['lab', 'conda-meta/new.json'],
      ['lab.muster-before', 'conda-meta/old.json'],
    ] as const) {
      mkdirSync(join(envs(), name, 'conda-meta'), { recursive: true })
      writeFileSync(join(envs(), name, file), '{}')
    }
    writeFileSync(join(envs(), 'lab/.muster-made'), 'conda\n')
  })

  /** `rm -rf` takes the half of it, or the whole; then everything is killed. */
  it.each([
    ['in the middle of it', `rm -r ${'"$2"'}/conda-meta`, 'which is incomplete'],
    ['behind it', '/bin/rm "$@"', 'which is incomplete'],
  ])('continues after %s, and restores the earlier prefix', async (_, half, title) => {
    here.program('rm', `[ "$1" = -rf ] || exec /bin/rm "$@"\nPATH=/usr/bin:/bin\n${half}\nkill -KILL $PPID`)
    expect((await here.doIt(area(), 'down')).codes).toEqual([null])
    rmSync(join(here.bin, 'rm'))
    expect((await here.doIt(area(), 'down')).titles).toEqual([expect.stringContaining(title)])
    expect(readdirSync(envs())).toEqual(['lab'])
    expect(readdirSync(join(envs(), 'lab/conda-meta'))).toEqual(['old.json'])
    expect(await here.look(area(), 'down')).toMatch(/was not created by Muster: it stays$/)
  })

  it('continues and restores the earlier prefix', async () => {
    here.program('mv', 'kill -KILL $PPID')
    expect((await here.doIt(area(), 'down')).codes).toEqual([null])
    expect(readdirSync(envs())).toEqual(['lab.muster-before'])
    rmSync(join(here.bin, 'mv'))
    expect((await here.doIt(area(), 'down')).titles).toEqual([`restore ${envs()}/lab as it was before`])
    expect(readdirSync(join(envs(), 'lab/conda-meta'))).toEqual(['old.json'])
  })
})
