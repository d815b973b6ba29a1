/** What is said where kubectl proxy does not start. */
import { expect, it } from 'vitest'
import type { OpsHosts } from '../../../../src/ops/kernel/host-port.ts'
import { openKubernetes } from '../../../../src/ops/kubernetes/kubernetes.ts'
import type { RunOutcome } from '../../../../src/ops/run/outcome.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

const EXIT: RunOutcome = { kind: 'exit', code: 1 }

it.each<[string, string, RunOutcome, string]>([
  ['no kubectl', 'kubectl is not installed\n', EXIT, 'kubectl is not installed on m1. Install it (https://'],
  [
    'no such context',
    'namespace \nerror: context "lab" does not exist\n',
    EXIT,
    'm1: the kubeconfig has no such context (context "lab" does not exist). List them: kubectl config get-contexts',
  ],
  [
    'no kubeconfig',
    'error: stat /root/.kube/none: no such file or directory\n',
    EXIT,
    'm1: kubectl has no usable kubeconfig (stat /root/.kube/none: no such file or directory). Set kubeconfig',
  ],
  [
    'a broken kubeconfig',
    'error: error loading config file "/root/.kube/config": yaml: line 1: did not find expected node content\n',
    EXIT,
    'm1: kubectl has no usable kubeconfig (error loading config file',
  ],
  ['a host that is away', '', { kind: 'unreachable', reason: 'no route to the host' }, 'cannot run kubectl on m1: '],
  ['escapes', 'error: \u001b[2Jgone\n', EXIT, 'kubectl proxy on m1 ended: \\x1b[2Jgone'],
])('names the cause and what to do: %s', async (_, said, outcome, expected) => {
  const none = new Uint8Array()
  const hosts: OpsHosts = {
    async exec(__, ___, { onOutput }) {
      onOutput?.('stderr', said)
      return { outcome, stdout: none, stderr: none, durationMs: 0 }
    },
  }
  const { signal } = new AbortController()
  using kubernetes = openKubernetes({ via: 'm1' }, { clock: new ManualClock(), environment: {}, signal, hosts })
  const answer = await kubernetes.api.request('GET', '/api/v1/pods')
  expect(answer).toMatchObject({ ok: false, status: 0, message: expect.stringContaining(expected) })
})
