import { describe, expect, it } from 'vitest'
import { currentAccount } from '../../../src/base/account.ts'

const ANA = { username: 'ana', uid: 1007, gid: 1007, shell: '/bin/sh', homedir: '/home/ana' }
const nameless = () => {
  throw new Error('uv_os_get_passwd returned ENOENT')
}
const uid = process.getuid?.()

describe('the account', () => {
  it('comes from the system, whatever the environment says', () => {
    const account = currentAccount((() => ANA) as never, { USER: 'ben', HOME: '/elsewhere' })
    expect(account).toEqual({ name: 'ana', uid: 1007, home: '/home/ana' })
  })

  it('comes from the environment if its number has no name', () => {
    expect(currentAccount(nameless, { USER: 'ben', HOME: '/home/ben' })).toEqual({
      name: 'ben',
      uid,
      home: '/home/ben',
    })
  })

  it('is its number if the environment says nothing', () => {
    expect(currentAccount(nameless, {})).toEqual({ name: String(uid), uid, home: '/' })
  })
})
