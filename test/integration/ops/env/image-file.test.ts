/** The file of an image that another host sent, and the archive that Docker gets of it: the real script, with a stand-in for docker. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadImage } from '../../../../src/ops/env/docker.ts'
import { savedNamesOf } from '../../../../src/ops/env/image-file.ts'
import { OneHome } from './one-home.ts'

let here: OneHome
let parcel: string

beforeEach(() => {
  here = new OneHome()
  parcel = join(here.home, 'parcel')
  mkdirSync(parcel)
  here.program('docker', `case $1 in load) cat > ~/got;; image) echo sha256:1;; version) echo 20;; esac`)
})
afterEach(() => here[Symbol.dispose]())

/** `program`: adds entries to the archive `a` of Python; `put(NAME, TEXT)` adds a file. */
function sent(program: string): void {
  const script = `import io, json, sys, tarfile
a = tarfile.open(sys.argv[1], "w", format=tarfile.PAX_FORMAT)
def put(name, text, **more):
    entry = tarfile.TarInfo(name)
    for key, value in more.items(): setattr(entry, key, value)
    entry.size = len(text.encode())
    a.addfile(entry, io.BytesIO(text.encode()))
def listed(*tags, **more): return dict({"Config": "c.json", "RepoTags": list(tags), "Layers": ["1/layer.tar"]}, **more)
${program}
a.close()
`
  writeFileSync(join(here.home, 'make.py'), script)
  const { status, stderr } = here.run(`python3 ~/make.py ${parcel}/image.tar`)
  if (status !== 0) throw new Error(`${stderr}`)
}

const load = () => {
  const { status, stderr } = here.run(loadImage('lab/tool:1', parcel, 'm1', 'm3').script)
  return { status, stderr: `${stderr}` }
}
const members = () => {
  const program = `import json, sys, tarfile
print(json.dumps({e.name: tarfile.open(sys.argv[1]).extractfile(e).read().decode() for e in tarfile.open(sys.argv[1])}))`
  return JSON.parse(`${here.run(`python3 -c '${program}' ~/got`).stdout}`) as Record<string, string>
}
const PARTS = 'put("c.json", "{}"); put("1/layer.tar", "one")\n'

describe('the file of an image', () => {
  it('reaches Docker with its parts and its own name alone', () => {
    const long = `${'d/'.repeat(120)}layer.tar`
    sent(`put("oci-layout", '{"imageLayoutVersion":"1.0.0"}'); put("index.json", '{"manifests":[{"annotations":{"io.containerd.image.name":"docker.io/library/base:1"}}]}')
put("repositories", '{"base":{"1":"1"}}')
put("c.json", '{"config":1}'); put("1/layer.tar", "one"); put("${long}", "long")
put("2/layer.tar", "", type=tarfile.SYMTYPE, linkname="../1/layer.tar")
put("./manifest.json", json.dumps([listed("lab/tool:1", repotags=["base:1"], Parent="sha256:0", Layers=["1/layer.tar", "${long}", "2/layer.tar"])]))`)
    expect(load()).toEqual({ status: 0, stderr: '' })
    const { 'manifest.json': list = '', ...parts } = members()
    expect(parts).toEqual({ 'config.json': '{"config":1}', 'layer-0.tar': 'one', 'layer-1.tar': 'long' })
    expect(JSON.parse(list)).toEqual([
      { Config: 'config.json', RepoTags: ['lab/tool:1'], Layers: ['layer-0.tar', 'layer-1.tar', 'layer-0.tar'] },
    ])
    expect(readFileSync(join(parcel, 'loaded-m1'), 'utf8')).toBe('m3 sha256:1\n')
  })

  it.each([
    ['other names', `${PARTS}put("manifest.json", json.dumps([listed("lab/tool:1", "base:1")]))`, /"base:1"/],
    ['another name', `${PARTS}put("manifest.json", json.dumps([listed("base:1")]))`, /not of lab\/tool:1 alone/],
    [
      'two images',
      `${PARTS}put("manifest.json", json.dumps([listed("lab/tool:1"), listed("base:1")]))`,
      /exactly one image/,
    ],
    ['no list of images', `${PARTS}put("repositories", '{"base":{"1":"1"}}')`, /lacks a part/],
    [
      'a missing layer',
      'put("c.json", "{}"); put("manifest.json", json.dumps([listed("lab/tool:1")]))',
      /lacks a part/,
    ],
    ['a list that is no JSON', `${PARTS}put("manifest.json", "[" * 200000)`, /not understood/],
    ['compressed contents', 'a.close(); a = tarfile.open(sys.argv[1], "w:gz")', /not an archive of docker save/],
    ['a name of many megabytes', `put("x" * (3 << 20), ""); ${PARTS}`, /too long a name/],
  ])('is refused if it has %s', (_, program, expected) => {
    sent(program)
    expect(load()).toEqual({ status: 1, stderr: expect.stringMatching(expected) })
    expect([existsSync(join(here.home, 'got')), existsSync(join(parcel, 'loading-m1'))]).toEqual([false, false])
  })

  it('is not noted as loaded if Docker takes only a part of it', () => {
    sent(`${PARTS}put("manifest.json", json.dumps([listed("lab/tool:1")]))`)
    here.program('docker', 'case $1 in load) exit 1;; image) echo sha256:1;; esac')
    expect(load().status).toBe(1)
    expect(existsSync(join(parcel, 'loaded-m1'))).toBe(false)
  })
})

it.each([
  ['tool', ['tool:latest', 'docker.io/library/tool:latest', 'localhost/tool:latest']],
  ['docker.io/library/tool:2', ['docker.io/library/tool:2', 'tool:2', 'localhost/tool:2']],
  ['lab/tool:1', ['lab/tool:1', 'docker.io/lab/tool:1', 'localhost/lab/tool:1']],
  ['ghcr.io/lab/tool:1', ['ghcr.io/lab/tool:1']],
  ['here:5000/tool', ['here:5000/tool:latest']],
])('the image %s may be saved under its own names alone', (image, names) => {
  expect(savedNamesOf(image)).toEqual(names)
})
