import { metrics, place } from './jobs.ts'
import {
  about,
  anyObject,
  count,
  flag,
  is,
  line,
  list,
  map,
  number,
  object,
  orNull,
  output,
  text,
  time,
} from './shape.ts'

/** Infinities are strings. */
const value = { type: ['number', 'string'] }
const counts = about('Trials by state.', map(count))
const best = object({ trial: count, parameters: map(text), metrics })

const study = {
  study: text,
  user: text,
  method: text,
  state: is('running', 'stopped', 'done', 'failed'),
  created: time,
  trials: counts,
  'most?': about('Trials at most.', count),
  'reason?': about('Why it has ended.', text),
  'trouble?': about('Why it has no next point.', text),
}

const trial = {
  study: text,
  trial: count,
  state: text,
  parameters: about('The texts that the trial got.', map(text)),
  metrics,
  'repetition?': count,
  'job?': count,
  'host?': text,
  'devices?': list(count),
  'started?': time,
  'ended?': time,
  'reason?': about('Why it failed, was cancelled or pruned.', text),
  'member?': count,
  'parent?': count,
  'parentStep?': number,
}

const points = about('Points of the space; null: a parameter may be any number.', orNull(number))
const created = line('study', 'The study.', { study: text, method: text, points, 'trials?': count })
const tried = line('study', 'With --dry-run: what would be tried first, and where.', {
  study: text,
  method: text,
  points,
  first: about('At most five points.', list(map(text))),
  fits: flag,
  'places?': list(place),
  why: list(text),
  'command?': about('What trial 0 would run.', text),
})
const whole = line('study', 'Everything about the study.', {
  ...study,
  spec: about('As it was created.', anyObject),
  best: about('The best trials, the best one first.', list(best)),
  'importance?': list(anyObject),
})
const endedTrial = line('trial', 'A trial.', trial)

export const create = output('study-create', '`muster study create --json`', created, tried)
export const sweep = output('sweep', '`muster sweep --json`', created, tried, endedTrial, whole)
export const studies = output(
  'study-list',
  '`muster study list --json`',
  line('study', 'A study.', { ...study, 'best?': best }),
)
export const showStudy = output('study-show', '`muster study show --json`', endedTrial, whole)
export const trials = output('study-results', '`muster study results --json`', endedTrial)
export const exported = output(
  'study-export',
  '`muster study export --json`',
  line('trial', 'A trial, in the order of numbers.', {
    ...trial,
    'steps?': about('Pairs of step and value.', list(list(value))),
  }),
)
export const plot = output(
  'study-plot',
  '`muster study plot --json`',
  line('best', 'A trial, in the order in which they ended.', {
    study: text,
    trial: count,
    metric: text,
    value,
    best: about('The best value until then.', value),
    ended: time,
  }),
  line('importance', 'How much a parameter matters.', {
    study: text,
    metric: text,
    parameter: text,
    share: number,
    trials: count,
  }),
)
export const stop = output(
  'study-stop',
  '`muster study stop --json`',
  line('stop', 'The study.', { study: text, stopped: count, running: count }),
)
export const more = output(
  'study-more',
  '`muster study more --json`',
  line('more', 'The study.', { study: text, again: count, 'most?': count }),
)
export const imported = output(
  'study-import',
  '`muster study import --json`',
  line('study', 'The study.', { study: text, parameters: list(text), trials: counts }),
)
export const ask = output(
  'study-ask',
  '`muster study ask --json`',
  line('trial', 'The next trial.', {
    study: text,
    trial: count,
    parameters: about('Numbers are numbers, choices are texts.', map(value)),
  }),
)
