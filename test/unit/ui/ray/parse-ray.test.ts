import { describe, expect, it } from 'vitest'
import { parseRayLine } from '../../../../src/ui/ray/parse-ray.ts'

describe('a line about Ray', () => {
  it('is none that begins with another word', () => {
    expect(parseRayLine('rays up')).toBeUndefined()
    expect(parseRayLine('run ray status')).toBeUndefined()
  })

  it('brings up all that is declared, or some hosts', () => {
    expect(parseRayLine('ray up')).toEqual({ kind: 'area', do: 'up', target: undefined })
    expect(parseRayLine(':ray down on m[8-9], m10 ')).toEqual({ kind: 'area', do: 'down', target: 'm[8-9], m10' })
    expect(parseRayLine('ray up m8')).toEqual({ error: 'ray up, or ray up on HOSTS' })
  })

  it('submits what follows the options as it stands', () => {
    const line = `ray submit --env 'WORD=a b' --cpus 2 --resources=scratch=1 --working-dir ~/job python -c 'print("x  y")' | cat`
    expect(parseRayLine(line)).toEqual({
      kind: 'jobs',
      order: {
        do: 'submit',
        follow: true,
        directory: '~/job',
        job: {
          entrypoint: `python -c 'print("x  y")' | cat`,
          environment: { WORD: 'a b' },
          cpus: 2,
          resources: { scratch: 1 },
        },
      },
    })
    expect(parseRayLine('ray submit --no-wait -- -x')).toMatchObject({
      order: { follow: false, job: { entrypoint: '-x' } },
    })
  })

  it.each([
    ['ray', 'ray status, up, down, watch, submit, jobs, logs, stop'],
    ['ray start', 'Ray knows status, up, down, watch, submit, jobs, logs, stop'],
    ['ray submit', 'a command is missing: ray submit python train.py'],
    ['ray submit --cpus two x', '--cpus has to be a number, 0 or more'],
    ['ray submit --env 1=2 x', '--env has to be NAME=VALUE'],
    [
      'ray submit --color x y',
      'ray submit knows --env, --cpus, --gpus, --resources, --working-dir, --id and --no-wait',
    ],
    ['ray submit --id', '--id needs a value'],
    ["ray submit --id 'a", 'a quotation mark is open'],
    ['ray logs', 'ray logs ID; ray jobs shows them'],
    ['ray stop a;b', 'ray stop ID; ray jobs shows them'],
    ['ray jobs now', 'nothing follows “ray jobs”'],
  ])('says what is wrong with “%s”', (line, error) => {
    expect(parseRayLine(line)).toEqual({ error })
  })

  it('follows a log', () => {
    const order = { do: 'logs', id: 'one', follow: true }
    expect(parseRayLine('ray logs -f one')).toEqual({ kind: 'jobs', order })
    expect(parseRayLine('ray logs one')).toEqual({ kind: 'jobs', order })
  })
})
