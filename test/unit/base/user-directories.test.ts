import { userInfo } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it, vi } from 'vitest'
import { configurationDirectory, homeDirectory, stateDirectory } from '../../../src/base/user-directories.ts'

afterEach(() => vi.unstubAllEnvs())

it('uses XDG variables, otherwise the home directory', () => {
  expect(stateDirectory({ XDG_STATE_HOME: '/state', HOME: '/home/me' })).toBe('/state/muster')
  expect(stateDirectory({ HOME: '/home/me' })).toBe('/home/me/.local/state/muster')
  expect(configurationDirectory({ XDG_CONFIG_HOME: '/etc/xdg', HOME: '/home/me' })).toBe('/etc/xdg')
})

it('ignores relative paths, as the specification requires', () => {
  expect(stateDirectory({ XDG_STATE_HOME: 'state', HOME: '/home/me' })).toBe('/home/me/.local/state/muster')
  expect(configurationDirectory({ XDG_CONFIG_HOME: '', HOME: '/home/me' })).toBe('/home/me/.config')
})

it('takes an empty or relative HOME for a missing one', () => {
  for (const HOME of ['', 'home', undefined]) {
    vi.stubEnv('HOME', HOME)
    const { homedir } = userInfo()
    expect(homeDirectory({ HOME })).toBe(homedir)
    expect(stateDirectory({ HOME, XDG_STATE_HOME: '' })).toBe(join(homedir, '.local/state/muster'))
    expect(configurationDirectory({ HOME, XDG_CONFIG_HOME: '' })).toBe(join(homedir, '.config'))
  }
})
