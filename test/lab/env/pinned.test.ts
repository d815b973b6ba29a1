/** `muster env` with hashes in the requirements: the host that the others follow cannot give them anything else. */
import { createHash } from 'node:crypto'
import { copyFileSync, cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { copyPipWheel, makeTinyWheel } from '../../support/tiny-wheel.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

const canRun = requirement(
  ...(['root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'flock', 'python3', 'python environments'] as const),
)

const PYTHON = '/usr/bin/python3'
const WHEEL = 'tiny-1.0-py3-none-any.whl'
const PARCEL = `cd "$(dirname "$(find ~/.cache/muster/env -name 'content-*')")"`
const NO_PIP = 'pip-99.0-py3-none-any.whl'
/** A pip that leaves a file where it runs. */
const PIP = `import glob, zipfile
name = (glob.glob("pip-*.whl") or ["${NO_PIP}"])[0]
with zipfile.ZipFile(name, "w") as wheel: wheel.writestr("pip/__main__.py", "open('/root/ran', 'w')")
`
/** In a parcel and its lock, whether or not they have a pip. */
const EVIL_PIP = `${PYTHON} -c '${PIP}' && h=$(sha256sum pip-*.whl) &&
{ grep -q ^pip== content-* || sed -i '$apip==99.0 --hash=sha256: # ${NO_PIP}' content-*; } &&
sed -i "s/^\\(pip==.*sha256:\\)[0-9a-f]*/\\1\${h%% *}/" content-*`

describe.skipIf(!canRun)('muster env with hashes', { timeout: 300_000 }, () => {
  let lab: Lab
  let evil: string
  const home = (name: string) => join(lab.directory, 'hosts', name, 'home')
  const up = async (): Promise<RunResult> => {
    const command = [...PROGRAM, '--hosts', join(lab.directory, 'env.yaml'), 'env', 'up', '--yes']
    return await lab.run(command, { timeoutMs: 200_000 })
  }
  const exec = async (name: string, script: string): Promise<string> => {
    const { code, stdout, stderr } = await lab.host(name).exec(script)
    if (code !== 0) throw new Error(`${name}: ${script}: exit ${code}\n${stdout}${stderr}`)
    return stdout
  }
  const declare = (names: readonly string[], from: string) => {
    const hosts = names.map((name) => `  ${name}: { address: ${lab.host(name).address} }\n`).join('')
    const venv = `path: ~/lab, python: ${PYTHON}, requirements: requirements.txt, from: ${from}`
    writeFileSync(
      join(lab.directory, 'env.yaml'),
      `defaults: { user: root }\nhosts:\n${hosts}environment:\n  venv: { ${venv} }\n`,
    )
  }
  const writeList = (text: string) => writeFileSync(join(lab.directory, 'requirements.txt'), text)
  const digest = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')
  const tiny = (name: string) => exec(name, '~/lab/bin/python -m tiny')

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    const wheels = join(home('m1'), 'wheels')
    evil = join(home('m1'), 'evil')
    for (const directory of [wheels, evil]) mkdirSync(directory)
    copyPipWheel(wheels)
    makeTinyWheel(wheels, 'tiny')
    makeTinyWheel(evil, 'tiny', 'evil')
    makeTinyWheel(evil, 'more', 'evil')
    declare(['m1', 'm2'], 'm1')
    await exec('m2', 'mkdir ~/wheels')
    for (const file of [WHEEL, basename(globSync(join(wheels, 'pip-*.whl'))[0] ?? '')])
      copyFileSync(join(wheels, file), join(home('m2'), 'wheels', file))
    for (const name of ['m1', 'm2']) {
      await exec(
        name,
        'mkdir -p ~/.config/pip && printf "[global]\\nfind-links = /root/wheels\\nno-index = true\\n" > ~/.config/pip/pip.conf',
      )
    }
    writeList(`tiny==1.0 \\\n  --hash=sha256:${digest(join(wheels, WHEEL))}\n`)
  }, 200_000)
  afterAll(async () => await lab?.stop())

  /** What m1 says from now on; the others have to ask it again. */
  const lie = async (script: string) => {
    await exec('m1', `${PARCEL} && ${script} && { [ ! -f ../own-m1 ] || cp content-* ../own-m1; }`)
    await exec('m2', 'rm -rf ~/lab ~/.cache/muster /root/ran')
  }
  const lockOf = (name: string, file: string) => `${name}==1.0 --hash=sha256:${digest(join(evil, file))} # ${file}`

  it('installs what the hashes allow', async () => {
    const { code, stdout, stderr } = await up()
    expect([code, stderr, stdout]).toEqual([0, '', expect.not.stringMatching(/FAILED|blocker/)])
    expect([await tiny('m1'), await tiny('m2')]).toEqual(['brought\n', 'brought\n'])
    expect((await up()).stdout).toContain('nothing to do')
  })

  it('does not run the pip of the host that is followed', async () => {
    await lie(EVIL_PIP)
    expect(await up()).toMatchObject({ code: 0, stderr: '' })
    expect([await tiny('m2'), await exec('m2', 'ls /root/ran 2> /dev/null; :')]).toEqual(['brought\n', ''])
  })

  it('refuses another wheel, also one whose hash is in the lock of the host', async () => {
    await lie(`cp ~/evil/${WHEEL} . && sed -i 's/^tiny.*/${lockOf('tiny', WHEEL)}/' content-*`)
    const { code, stdout } = await up()
    const hash = `sha256:${digest(join(evil, WHEEL))}`
    expect(stdout).toContain(
      `m2: install them in ~/lab (offline): FAILED: m1 gathered ${WHEEL}, which requirements.txt does not allow. Nothing was installed. If you trust it, because m1 built it from source, add its hash there: ${hash} (exit 1)`,
    )
    expect(stdout).not.toMatch(/blocker|not working/)
    expect([code, await exec('m2', `~/lab/bin/python -c 'import tiny' 2> /dev/null || echo none`)]).toEqual([
      5,
      'none\n',
    ])
  })

  it('refuses another package, and lines that are not of a wheel', async () => {
    const file = 'more-1.0-py3-none-any.whl'
    const good = `cp ~/wheels/${WHEEL} . && sed -i 's/^tiny.*/tiny==1.0 --hash=sha256:'$(sha256sum ${WHEEL} | cut -c 1-64)' # ${WHEEL}/' content-*`
    await lie(`${good} && cp ~/evil/${file} . && sed -i '$a ${lockOf('more', file)}' content-*`)
    expect((await up()).stdout).toMatch(
      /^m2: .*FAILED: m1 gathered more 1\.0, for which requirements\.txt has no hash\./m,
    )
    await lie(`sed -i 's/^more.*/--extra-index-url http:\\/\\/127.0.0.1\\/ # ${WHEEL}/' content-*`)
    expect((await up()).stdout).toMatch(/^m2: .*FAILED: the lock of m1 has a line that is not of a wheel\./m)
  })

  /** Another list, and nothing on the hosts of what was before. */
  const anew = async (text: string) => {
    writeList(text)
    for (const name of ['m1', 'm2']) await exec(name, 'rm -rf ~/lab ~/.cache/muster')
  }

  it.each(['', '--require-hashes'])('refuses another wheel than that of a URL with a hash (%s)', async (demand) => {
    const hash = digest(join(home('m1'), 'wheels', WHEEL))
    await anew(`${demand}\ntiny @ file:///root/wheels/${WHEEL}#sha256=${hash}\n`)
    expect(await up()).toMatchObject({ code: 0, stderr: '' })
    expect([await tiny('m1'), await tiny('m2')]).toEqual(['brought\n', 'brought\n'])
    await lie(`cp ~/evil/${WHEEL} . && sed -i 's/^tiny.*/${lockOf('tiny', WHEEL)}/' content-*`)
    expect((await up()).stdout).toMatch(
      /^m2: .*FAILED: m1 gathered tiny-1.*whl, which requirements\.txt does not allow\./m,
    )
  })

  it('says that a weak hash of a URL is none, where others have one', async () => {
    const url = `file:///root/wheels/${WHEEL}`
    const weak = createHash('md5')
      .update(readFileSync(join(home('m1'), 'wheels', WHEEL)))
      .digest('hex')
    await anew(`tiny @ ${url}#md5=${weak}\nother @ ${url}#sha256=00 ; python_version < "3"\n`)
    const { stdout } = await up()
    expect(stdout).toMatch(
      /^m2: .*FAILED: m1 gathered tiny 1\.0, for which requirements\.txt has only a weak hash \(md5, sha1 or sha224\)\. Nothing was installed\. Give it one of sha256/m,
    )
  })

  it('never writes through a link that the host sent, and takes none', async () => {
    const list = `tiny==1.0 --hash=sha256:${digest(join(home('m1'), 'wheels', WHEEL))}\n`
    await anew(list)
    expect(await up()).toMatchObject({ code: 0, stderr: '' })
    await exec('m2', 'mkdir ~/victim')
    await lie('ln -s /root/victim sub')
    expect((await up()).stdout).toMatch(/^m2: .*FAILED: m1 sent a link, .*\/sub, among files: nothing was copied/m)
    // As earlier versions left it.
    await exec(
      'm2',
      'mkdir -p ~/.cache/muster/env/muster-*/of-m1 && cd ~/.cache/muster/env/muster-*/of-m1 && ln -s /root/victim sub',
    )
    await exec('m1', `${PARCEL} && rm sub && mkdir sub && echo evil > sub/authorized_keys`)
    expect(await up()).toMatchObject({ code: 0, stderr: '' })
    expect(await exec('m2', `ls ~/victim; ${PARCEL} && cat sub/authorized_keys`)).toBe('evil\n')
  })

  describe('when another host is followed from now on', () => {
    const good = () => digest(join(home('m2'), 'wheels', WHEEL))
    const evilWheel = () => `cp ~/evil/${WHEEL} . && sed -i 's/^tiny.*/${lockOf('tiny', WHEEL)}/' content-*`
    const filesOf = (name: string) => exec(name, 'cd ~/.cache/muster/env && find . -type f | sort')
    afterEach(() => declare(['m1', 'm2'], 'm1'))

    it('deletes wheels that it refused, and never installs them as its own', async () => {
      await anew(`tiny==1.0 --hash=sha256:${good()}\n`)
      expect(await up()).toMatchObject({ code: 0, stderr: '' })
      await lie(evilWheel())
      expect((await up()).stdout).toMatch(
        /^m2: .*FAILED: m1 gathered tiny-1.*, which requirements\.txt does not allow/m,
      )
      expect(await filesOf('m2')).not.toContain('.whl')
      // As earlier versions left them, which did not say whose they are.
      const legacy = `muster-${createHash('sha256').update('~/lab').digest('hex').slice(0, 16)}`
      const left = join(home('m2'), '.cache/muster/env', legacy)
      const parcel = dirname(globSync(join(home('m1'), '.cache/muster/env/**/content-*'))[0] ?? '')
      cpSync(parcel, left, { recursive: true })
      declare(['m1', 'm2'], 'm2')
      const { code, stdout } = await up()
      expect(stdout).toContain(`- ~/.cache/muster/env/${legacy}`)
      expect([code, await tiny('m2'), existsSync(left)]).toEqual([0, 'brought\n', false])
      expect(await filesOf('m1')).not.toMatch(/of-m1|own-m1/)
      expect((await up()).stdout).toContain('nothing to do')
    })

    it('runs no pip that another host sent, nor keeps what it installed', async () => {
      await anew('tiny==1.0\n')
      expect(await up()).toMatchObject({ code: 0, stderr: '' })
      await lie(evilWheel())
      expect(await up()).toMatchObject({ code: 0, stderr: '' })
      expect(await tiny('m2')).toBe('evil\n')
      // pip in the environment of m2 is the one of m1, too.
      const pip = "echo \"open('/root/ran', 'w')\" | tee ~/lab/lib/python3.*/site-packages/pip/__init__.py"
      await exec('m2', `${pip} && rm -f /root/ran`)
      await exec('m2', `cd "$(dirname "$(find ~/.cache/muster/env -name 'content-*')")" && ${EVIL_PIP}`)
      declare(['m2'], 'm2')
      writeList('tiny==1.0\n# newer\n')
      const { code, stdout } = await up()
      expect([code, stdout]).toEqual([0, expect.stringContaining('~ ~/lab: all packages, because m1 chose them')])
      expect([await tiny('m2'), await exec('m2', 'ls /root/ran 2> /dev/null; :')]).toEqual(['brought\n', ''])
      expect((await up()).stdout).toContain('nothing to do')
    })

    it('takes wheels of an earlier host of the same name for no other', async () => {
      await anew('tiny==1.0\n')
      expect(await up()).toMatchObject({ code: 0, stderr: '' })
      await lie(evilWheel())
      expect(await up()).toMatchObject({ code: 0, stderr: '' })
      expect(await tiny('m2')).toBe('evil\n')
      // A new machine in its place.
      await exec('m1', 'rm -rf ~/lab ~/.cache/muster')
      await exec('m2', 'rm -rf ~/lab')
      expect((await up()).stdout).toMatch(/^m2: copy the wheels from m1: done/m)
      expect(await tiny('m2')).toBe('brought\n')
      await exec('m2', 'rm -rf ~/lab')
      expect((await up()).stdout).toMatch(/^m2: copy the wheels from m1: (?!done)/m)
      expect(await tiny('m2')).toBe('brought\n')
    })
  })
})
