import { describe, expect, it } from 'vitest'
import { inEnvironment, withStdinIn } from '../../../../src/cli/job/environment.ts'

describe('the environment of a job', () => {
  it('is that of a command that reads its stdin', () => {
    expect(withStdinIn({ kind: 'venv', name: '/opt/v' }, 'python3 e.py')).toBe(
      '. /opt/v/bin/activate || exit 126\npython3 e.py',
    )
    expect(withStdinIn({ kind: 'image', name: 'img' }, "a 'b'")).toBe(
      "docker run --rm --init -i img sh -c 'a '\\''b'\\'''",
    )
    expect(withStdinIn({ kind: 'image', name: 'img', container: 'own' }, 'a')).toBe('docker exec -i own sh -c a')
  })

  it('has the checkpoint of a member in its container', () => {
    const image = { kind: 'image', name: 'img' } as const
    const mount = '-v "$MUSTER_CHECKPOINT:$MUSTER_CHECKPOINT"'
    expect(inEnvironment('a', image, ['lr', 'MUSTER_CHECKPOINT'], false)).toContain(mount)
    expect(inEnvironment('a', image, ['lr'], false)).not.toContain(mount)
  })
})
