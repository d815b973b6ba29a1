/** `muster status k8s` and `muster up k8s` with the real kubectl, where something else than an API server answers. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { FakeApiServer, sendJson } from '../../../support/fake-api-server.ts'
import { requirement } from '../../../support/requirements.ts'
import { runMuster } from '../../../support/run-muster.ts'

describe.skipIf(!requirement('kubectl'))('the cluster of hosts.yaml, if its address answers', () => {
  let directory: string
  let api: FakeApiServer

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-not-kubernetes-'))
    api = await FakeApiServer.start((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!DOCTYPE html>\n<title>Log in</title>\n')
    }, 0)
    const file = join(directory, 'kubeconfig')
    const server = api.url.replace('//', '//ada:secret@')
    const config = `{apiVersion: v1, kind: Config, current-context: lab, users: [{name: ada, user: {}}],
 clusters: [{name: lab, cluster: {server: "${server}"}}], contexts: [{name: lab, context: {cluster: lab, user: ada}}]}\n`
    writeFileSync(file, config)
    writeFileSync(join(directory, 'hosts.yaml'), `k8s: { kubeconfig: ${file}, namespace: team }\n`)
  })
  afterEach(() => {
    api[Symbol.dispose]()
    rmSync(directory, { recursive: true, force: true })
  })

  const muster = (...args: readonly string[]) => runMuster(['--hosts', 'hosts.yaml', ...args], { directory })
  const HINT = 'Check the server in the kubeconfig, and whether a proxy on the way wants a login first'

  it.each([
    ['a web page', undefined, 'a web page'],
    ['JSON of another service', { kind: 'login' }, 'JSON without a version of Kubernetes'],
    ['a version that is no text', { gitVersion: { major: 1 } }, 'JSON without a version of Kubernetes'],
  ])('%s, is blocked', async (_, body, what) => {
    if (body !== undefined) api.answer = (_, response) => sendJson(response, body)
    const cause = `what answers at ${api.url} is not the API server of a Kubernetes cluster: it sends ${what}`
    const status = await muster('status', 'k8s')
    expect([status.exitCode, status.output]).toEqual([1, expect.stringMatching(/^blocked +k8s · this-machine: /m)])
    expect(status.output).toContain(`${cause}. ${HINT}`)
    expect(status.output + status.messages).not.toContain('secret')
    const up = await muster('up', 'k8s', '--yes')
    expect([up.exitCode, up.output]).toEqual([5, expect.stringContaining(`! ${cause}. ${HINT}`)])
  })

  it('with a version of Kubernetes, is good', async () => {
    api.answer = ({ path }, response) =>
      sendJson(response, path === '/version' ? { major: '1', minor: '32', gitVersion: 'v1.32.4' } : { kind: 'List' })
    const { output } = await muster('up', 'k8s', '--dry-run')
    expect(output).toContain('nothing to do: lab answers: Kubernetes v1.32.4, kubectl v')
  })
})
