import { describe, expect, it } from 'vitest'
import { algorithmsOf, lacksAlgorithms } from '../../../../src/inventory/ssh-config/algorithms.ts'
import { algorithmsFor } from '../../../../src/ssh/ssh2/handshake.ts'

const allowed = (keyword: string, value: string) => algorithmsOf(new Map([[keyword, [value]]]))
const offered = (keyword: string, value: string, known: readonly string[] = []) =>
  algorithmsFor(allowed(keyword, value), known, false)

describe('the algorithms that are offered', () => {
  it("are all of the built-in transport's if ssh_config names all", () => {
    const all = algorithmsFor(undefined, [], false)
    const last = algorithmsFor(undefined, [], true)
    const lists = {
      hostkeyalgorithms: all.serverHostKey,
      kexalgorithms: [...(all.kex as string[]), ...(last.kex as string[])],
      ciphers: all.cipher,
      macs: all.hmac,
    }
    for (const [keyword, list] of Object.entries(lists)) {
      for (const name of list as string[]) {
        expect(allowed(keyword, (list as string[]).filter((other) => other !== name).join())).toBeDefined()
        expect(lacksAlgorithms(new Map([[keyword, [name]]]))).toBeUndefined()
      }
    }
    expect(allowed('hostkeyalgorithms', (all.serverHostKey as string[]).join())).toBeUndefined()
    expect(allowed('macs', (all.hmac as string[]).join())).toBeUndefined()
  })

  it('begin with those of known keys, in the order of the list', () => {
    const { serverHostKey } = algorithmsFor(undefined, ['rsa-sha2-512', 'ecdsa-sha2-nistp256'], false)
    expect((serverHostKey as string[]).slice(0, 3)).toEqual(['ecdsa-sha2-nistp256', 'rsa-sha2-512', 'ssh-ed25519'])
  })

  it('keep a configured order, whatever key is known', () => {
    const { serverHostKey } = offered('hostkeyalgorithms', '^rsa-sha2-256', ['ssh-ed25519'])
    expect((serverHostKey as string[]).slice(0, 2)).toEqual(['rsa-sha2-256', 'ssh-ed25519'])
  })

  it('lack what a pattern removes, and include what it adds', () => {
    expect(offered('hostkeyalgorithms', '-ssh-ed25519,ecdsa-*').serverHostKey).toEqual(['rsa-sha2-512', 'rsa-sha2-256'])
    expect(offered('hostkeyalgorithms', '+ssh-rsa').serverHostKey).toContain('ssh-rsa')
    expect(offered('kexalgorithms', '-curve25519-*,ecdh-*').kex).toEqual([
      'diffie-hellman-group14-sha256',
      'diffie-hellman-group16-sha512',
    ])
    expect(offered('ciphers', 'aes256-ctr,aes192-ctr').cipher).toEqual(['aes256-ctr'])
  })

  it('are none if ssh_config allows only what the built-in transport lacks, and this is reported', () => {
    expect(lacksAlgorithms(new Map([['kexalgorithms', ['sntrup761x25519-sha512@openssh.com']]]))).toBe(
      'KexAlgorithms allows nothing that the built-in transport has (sntrup761x25519-sha512@openssh.com)',
    )
  })
})
