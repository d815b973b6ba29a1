import { about, is, object, text } from './shape.ts'

export const gravity = is('blocker', 'risk', 'note')

/** A problem of a host. */
export const finding = {
  host: text,
  gravity,
  id: about('A stable word for scripts.', text),
  cause: text,
  'detail?': text,
  'hint?': text,
  'fix?': object({ where: is('host', 'here'), command: text }),
}
