/** Which hashes a file of packages allows. */
import { describe, expect, it } from 'vitest'
import { includedFile, pinsOf } from '../../../../src/ops/env/pins.ts'

const hash = (digit: string) => digit.repeat(64)
const listed = (text: string) => listOf(pinsOf({ path: '/home/ann/requirements.txt', text }))
const locked = (path: string, text: string) => listOf(pinsOf({ path, text }))
const listOf = (pins: ReturnType<typeof pinsOf>) =>
  pins && Object.fromEntries([...pins].map(([name, hashes]) => [name, [...hashes]]))

describe('a list for pip', () => {
  it('allows all files if it has no hashes', () => {
    expect(listed('requests<3\nidna==3.6 # --hash=sha256:00 was here\n')).toBeUndefined()
    expect(listed('')).toBeUndefined()
  })

  it('allows the hashes of its lines, also of continued ones', () => {
    const text = `# made by pip-compile
Tiny_Thing[fast]==1.0 ; python_version >= "3.9" \\
    --hash=sha256:${hash('a')} \\
    --hash=sha512:${hash('b')}${hash('b')}
    # via other
other==2 --hash sha256:${hash('c').toUpperCase()} # --hash=sha256:${hash('0')}
https://host/simple/by-url-1.0-py3-none-any.whl --hash=sha256:${hash('d')}
named @ https://host/x-1.whl --hash=sha256:${hash('e')}
weak==1 --hash=md5:${hash('f').slice(32)}
tiny-thing==1.1 ; python_version < "3.9" --hash=sha256:${hash('1')}
without==1
`
    expect(listed(text)).toEqual({
      'tiny-thing': [`sha256:${hash('a')}`, `sha512:${hash('b')}${hash('b')}`, `sha256:${hash('1')}`],
      other: [`sha256:${hash('c')}`],
      'by-url': [`sha256:${hash('d')}`],
      named: [`sha256:${hash('e')}`],
    })
  })

  it('allows the hashes of URLs, also without other ones', () => {
    expect(
      listed(`tiny @ file:///w/tiny-1.0-py3-none-any.whl#sha256=${hash('a').toUpperCase()} ; python_version > "3"
Many_Things[fast] @ https://host/x.whl?a=/b-1#egg=x&sha256=${hash('b')}&subdirectory=c/d-2 --hash=sha256:${hash('c')}
close@https://host/close-1.whl#sha512=${hash('d')}${hash('d')}
https://host/by_url-1.0-py3-none-any.whl?a=/b-1#sha384=${hash('e')}; python_version > "3"
https://host/main.zip#egg=by-egg&sha256=${hash('f')}
https://host/nameless.zip#sha256=${hash('0')}
commented @ https://host/x.whl #sha256=${hash('1')}
without==1
`),
    ).toEqual({
      tiny: [`sha256:${hash('a')}`],
      'many-things': [`sha256:${hash('c')}`, `sha256:${hash('b')}`],
      close: [`sha512:${hash('d')}${hash('d')}`],
      'by-url': [`sha384:${hash('e')}`],
      'by-egg': [`sha256:${hash('f')}`],
    })
    expect(listed(`tiny @ https://host/tiny-1.0.whl#sha256=\${SET_ON_A_HOST}\n`)).toEqual({})
  })

  it('takes a weak hash of a URL for none: beside other hashes its package is not allowed', () => {
    const weak = ['md5', 'sha1', 'sha224']
      .map((each) => `${each}x @ https://host/x-1.whl#${each}=${hash('a')}\n`)
      .join('')
    expect(listed(weak)).toBeUndefined()
    expect(listed(`${weak}tiny @ https://host/x-1.whl#sha256=${hash('b')}\n`)).toEqual({
      md5x: [],
      sha1x: [],
      sha224x: [],
      tiny: [`sha256:${hash('b')}`],
    })
  })

  it('takes no hash of a repository, an index or an option for one of a file', () => {
    const text = `git+https://host/tiny@0123456789abcdef#egg=tiny&sha256=${hash('a')}
tiny @ git+ssh://git@host/tiny@main#sha256=${hash('a')}
--find-links https://host/list.html#sha256=${hash('a')}
-e file:///src/tiny#sha256=${hash('a')}
`
    expect(listed(text)).toBeUndefined()
  })

  it('allows nothing if it only demands hashes, or has none that pip accepts', () => {
    expect(listed('--require-hashes\ntiny==1.0\n')).toEqual({})
    expect(listed(`tiny==1.0 --hash=md5:${hash('f').slice(32)}\n`)).toEqual({})
  })
})

it('finds a file beside the list that the list includes', () => {
  for (const line of ['-r base.txt', '-rbase.txt', '--requirement=base.txt', '-c base.txt', '--constraint "base.txt"'])
    expect(includedFile(`tiny\n${line} # shared\n`)).toBe('base.txt')
  for (const line of [
    '# -r base.txt',
    '-r /shared/base.txt',
    '-c https://host/base.txt',
    '--require-hashes',
    'r-base.txt',
  ])
    expect(includedFile(`tiny\n${line}\n`)).toBeUndefined()
})

describe('a lock', () => {
  it('of uv allows the hashes of each package', () => {
    const text = `version = 1
requires-python = ">=3.9"

[[package]]
name = "job"
version = "1"
source = { virtual = "." }
dependencies = [
    { name = "tiny-thing" },
]

[package.metadata]
requires-dist = [{ name = "tiny-thing", specifier = "==1.0" }]

[[package]]
name = "tiny-thing"
version = "1.0"
source = { registry = "https://pypi.org/simple" }
dependencies = [
    { name = "other" },
]
sdist = { url = "https://host/tiny_thing-1.0.tar.gz", hash = "sha256:${hash('a')}", size = 3 }
wheels = [
    { url = "https://host/tiny_thing-1.0-py3-none-any.whl", hash = "sha256:${hash('b')}", size = 3 },
]

[[package]]
name = "other"
version = "2"
wheels = [{ url = "https://host/other-2-py3-none-any.whl", hash = "sha256:${hash('c')}" }]
`
    expect(locked('job/uv.lock', text)).toEqual({
      'tiny-thing': [`sha256:${hash('a')}`, `sha256:${hash('b')}`],
      other: [`sha256:${hash('c')}`],
    })
    expect(locked('uv.lock', 'version = 1\n')).toEqual({})
  })

  it('of PEP 751 does so in both forms of TOML', () => {
    const text = `lock-version = "1.0"

[[packages]]
name = "Tiny.Thing"
version = "1.0"
wheels = [{ name = "tiny_thing-1.0-py3-none-any.whl", url = "https://host/x", hashes = { sha256 = "${hash('a')}" } }]

[[packages]]
name = "other"
version = "2"

[packages.sdist]
name = "other-2.tar.gz"

[packages.sdist.hashes]
sha256 = "${hash('b')}"

[[packages.wheels]]
name = "other-2-py3-none-any.whl"

[packages.wheels.hashes]
sha256 = "${hash('c')}"
`
    expect(locked('pylock.toml', text)).toEqual({
      'tiny-thing': [`sha256:${hash('a')}`],
      other: [`sha256:${hash('b')}`, `sha256:${hash('c')}`],
    })
  })
})
