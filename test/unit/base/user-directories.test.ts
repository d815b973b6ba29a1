import { expect, it } from 'vitest'
import { configurationDirectory, stateDirectory } from '../../../src/base/user-directories.ts'

it('uses XDG variables, otherwise the home directory', () => {
  expect(stateDirectory({ XDG_STATE_HOME: '/state', HOME: '/home/me' })).toBe('/state/muster')
  expect(stateDirectory({ HOME: '/home/me' })).toBe('/home/me/.local/state/muster')
  expect(configurationDirectory({ XDG_CONFIG_HOME: '/etc/xdg', HOME: '/home/me' })).toBe('/etc/xdg')
})

it('ignores relative paths, as the specification requires', () => {
  expect(stateDirectory({ XDG_STATE_HOME: 'state', HOME: '/home/me' })).toBe('/home/me/.local/state/muster')
  expect(configurationDirectory({ XDG_CONFIG_HOME: '', HOME: '/home/me' })).toBe('/home/me/.config')
})
