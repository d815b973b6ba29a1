import { expect, it } from 'vitest'
import { followAgent } from '../../../../src/cli/connect/transports.ts'
import type { Endpoint } from '../../../../src/inventory/host.ts'
import type { ConnectContext, Connection } from '../../../../src/ssh/transport.ts'
import { endpointOf } from '../../../support/endpoint.ts'

it('logs in with the agent of the terminal that was attached last', async () => {
  const asked: Endpoint[] = []
  const environment: Record<string, string> = { SSH_AUTH_SOCK: '/run/first' }
  const transport = followAgent(
    {
      async connect(endpoint) {
        asked.push(endpoint)
        return {} as Connection
      },
    },
    environment,
  )
  const jump = endpointOf('gate', { agentSocket: '/run/first' })
  const host = endpointOf('m1', { agentSocket: '/run/first', jump: [jump] })
  const others = [endpointOf('m2', { agentSocket: '/run/of-its-own' }), endpointOf('m3')]
  await transport.connect(host, {} as ConnectContext)
  environment.SSH_AUTH_SOCK = '/run/second'
  for (const each of [host, ...others]) await transport.connect(each, {} as ConnectContext)
  expect(asked).toEqual([
    host,
    { ...host, agentSocket: '/run/second', jump: [{ ...jump, agentSocket: '/run/second' }] },
    ...others,
  ])
})
