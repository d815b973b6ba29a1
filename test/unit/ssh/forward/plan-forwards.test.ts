import { describe, expect, it } from 'vitest'
import { formatSocketAddress } from '../../../../src/ssh/forward/forward-spec.ts'
import { forwardWords, type KnownDashboard, planForwards } from '../../../../src/ssh/forward/plan-forwards.ts'

const RAY: KnownDashboard = { name: 'ray', host: 'm1', at: { address: '10.0.0.1', port: 9265 } }

const planned = (hosts: readonly string[], line: string, known: readonly KnownDashboard[] = []): readonly string[] =>
  planForwards(hosts, forwardWords(line.split(' ')), known).map(({ host, spec, title }) =>
    [
      host,
      spec.kind,
      formatSocketAddress(spec.listen),
      ...(spec.kind === 'dynamic' ? [] : [formatSocketAddress(spec.to)]),
      ...(title === undefined ? [] : [title]),
    ].join(' '),
  )

describe('forwards of hosts', () => {
  it('counts exact ports up from host to host, but not those that the hosts listen on', () => {
    expect(planned(['m1', 'm2'], '-L 9000:db:80 -R9001:localhost:80 -D 1080')).toEqual([
      'm1 local 127.0.0.1:9000 db:80',
      'm1 remote localhost:9001 localhost:80',
      'm1 dynamic 127.0.0.1:1080',
      'm2 local 127.0.0.1:9001 db:80',
      'm2 remote localhost:9001 localhost:80',
      'm2 dynamic 127.0.0.1:1081',
    ])
  })

  it('takes a dashboard from where it is known to be, else from its usual port', () => {
    expect(planned(['m1', 'm2'], 'ray jupyter', [RAY])).toEqual([
      'm1 local 127.0.0.1:9265 10.0.0.1:9265 Ray dashboard',
      'm1 local 127.0.0.1:8888 localhost:8888 Jupyter',
      'm2 local 127.0.0.1:8265 localhost:8265 Ray dashboard',
      'm2 local 127.0.0.1:8888 localhost:8888 Jupyter',
    ])
    expect(planned(['m2'], 'optuna', [{ ...RAY, name: 'optuna', host: 'm2', source: 'job 7' }])).toEqual([
      'm2 local 127.0.0.1:9265 10.0.0.1:9265 Optuna dashboard of job 7',
    ])
  })

  it('says what is wrong', () => {
    expect(() => planForwards(['m1'], { plain: [] })).toThrow('nothing to forward')
    expect(() => planned(['m1'], 'tensorbord')).toThrow('unknown dashboard: tensorbord')
    expect(() => planned(['m1'], '-L')).toThrow('the address to connect to is missing')
    expect(() => planned(['m1', 'm2'], '-D 65535')).toThrow('not enough ports for all hosts')
  })
})
