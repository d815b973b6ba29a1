import { describe, expect, it } from 'vitest'
import { parseRayLine } from '../../../../src/ui/ray/ray-line.ts'

describe('a line about Ray', () => {
  it('ignores lines that start with another word', () => {
    expect(parseRayLine('rays up')).toBeUndefined()
    expect(parseRayLine('run ray status')).toBeUndefined()
  })

  it('brings up all declared hosts, or some', () => {
    expect(parseRayLine('ray up')).toEqual({ kind: 'area', do: 'up', target: undefined })
    expect(parseRayLine(':ray down on m[8-9], m10 ')).toEqual({ kind: 'area', do: 'down', target: 'm[8-9], m10' })
    expect(parseRayLine('ray up m8')).toEqual({ error: 'type ray up or ray up on HOSTS' })
  })

  it('submits the text after the options unchanged', () => {
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
    ['ray start', 'unknown: ray start. Use status, up, down, watch, submit, jobs, logs, stop'],
    ['ray submit', 'missing command: ray submit python train.py'],
    ['ray submit --cpus two x', '--cpus must be a number, 0 or more'],
    ['ray submit --env 1=2 x', '--env must be NAME=VALUE'],
    ['ray submit --env FOO x', '--env must be NAME=VALUE'],
    ['ray submit --color x y', 'options: --env, --cpus, --gpus, --resources, --working-dir, --id and --no-wait'],
    ['ray submit --id', '--id needs a value'],
    ["ray submit --id 'a", 'unclosed quotation mark'],
    ['ray logs', 'type ray logs ID; ray jobs lists them'],
    ['ray stop a;b', 'type ray stop ID; ray jobs lists them'],
    ['ray jobs now', 'ray jobs takes no arguments'],
  ])('says what is wrong with “%s”', (line, error) => {
    expect(parseRayLine(line)).toEqual({ error })
  })

  it('follows a log', () => {
    const order = { do: 'logs', id: 'one', follow: true }
    expect(parseRayLine('ray logs -f one')).toEqual({ kind: 'jobs', order })
    expect(parseRayLine('ray logs one')).toEqual({ kind: 'jobs', order })
  })
})
