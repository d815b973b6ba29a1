import { count, flag, is, line, list, map, number, object, orNull, output, text, time, whole } from './shape.ts'

export const plan = output(
  'plan',
  '`muster plan --json`',
  line('plan', 'The placement groups of a framework, and whether they fit.', {
    rules: text,
    fits: is('now', 'later', 'never'),
    groups: list(
      object({
        name: text,
        strategy: is('PACK', 'SPREAD', 'STRICT_PACK', 'STRICT_SPREAD', null),
        bundles: list(map(number)),
        sharedBy: list(text),
        places: orNull(list(object({ host: text, bundles: count, devices: list(count), withoutGpu: count }))),
        'lacks?': text,
      }),
    ),
    heldGpuMilli: whole,
    'refusal?': text,
    waitsFor: list(object({ job: count, 'until?': time })),
    hostsDown: list(text),
    'change?': object({ options: list(text), onIdle: flag }),
    'needs?': text,
    unused: list(text),
    renamed: list(object({ old: text, now: text })),
    notes: list(text),
    time,
  }),
)
