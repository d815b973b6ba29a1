import { expect, it } from 'vitest'
import { configurationDirectory, stateDirectory } from '../../../src/base/user-directories.ts'

it('takes what XDG variables say, else the home directory', () => {
  expect(stateDirectory({ XDG_STATE_HOME: '/state', HOME: '/home/me' })).toBe('/state/muster')
  expect(stateDirectory({ HOME: '/home/me' })).toBe('/home/me/.local/state/muster')
  expect(configurationDirectory({ XDG_CONFIG_HOME: '/etc/xdg', HOME: '/home/me' })).toBe('/etc/xdg')
})

it('passes over paths that are not absolute, as the specification asks: they would mean another place in each directory', () => {
  expect(stateDirectory({ XDG_STATE_HOME: 'state', HOME: '/home/me' })).toBe('/home/me/.local/state/muster')
  expect(configurationDirectory({ XDG_CONFIG_HOME: '', HOME: '/home/me' })).toBe('/home/me/.config')
})
