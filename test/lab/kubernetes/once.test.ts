/** A job goes to Kubernetes once, wherever the scheduler is killed. */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { KUBERNETES_PARTS, type KubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import { isJob, type LabQueue } from '../jobs/lab-queue.ts'
import { kubernetesQueue } from './kubernetes-queue.ts'

/**
 * Stands in for kubectl: its proxy stops at the request that the file `at` names (`before POST jobs`), and says so in the file
 * `reached`. The request after such a stop never gets an answer.
 */
const steppingKubectl = (directory: string) => `#!/usr/bin/python3
import os, re, shutil, signal, socket, subprocess, sys, threading
STEPS = ${JSON.stringify(directory)}
path = os.pathsep.join(p for p in os.environ['PATH'].split(os.pathsep) if p != STEPS)
real = shutil.which('kubectl', path=path)
own = [a for a in sys.argv if a.startswith('--unix-socket=')]
if not own: os.execv(real, [real] + sys.argv[1:])
place = own[0].split('=', 1)[1]
child = subprocess.Popen([real] + [a + '.real' if a in own else a for a in sys.argv[1:]], stdout=subprocess.PIPE)
def leave(*_):
    child.kill()
    os._exit(0)
signal.signal(signal.SIGTERM, leave)
def stop_at(step):
    try:
        with open(STEPS + '/at') as file: at = file.read()
    except FileNotFoundError: return
    if at != step: return
    os.unlink(STEPS + '/at')
    open(STEPS + '/reached', 'w').close()
    threading.Event().wait()
def serve(client):
    head = b''
    while b'\\r\\n\\r\\n' not in head:
        more = client.recv(65536)
        if not more: return
        head += more
    text = head.split(b'\\r\\n\\r\\n')[0].decode()
    step = re.sub(r'^(\\w+) [^? ]*/(jobs|pods|services)\\b.*', r'\\1 \\2', text.splitlines()[0])
    length = re.search(r'content-length: (\\d+)', text, re.I)
    while length and len(head) - len(text) - 4 < int(length[1]): head += client.recv(65536)
    stop_at('before ' + step)
    server = socket.socket(socket.AF_UNIX)
    server.connect(place + '.real')
    server.sendall(head)
    first = server.recv(65536)
    stop_at('after ' + step)
    client.sendall(first)
    while True:
        more = server.recv(65536)
        if not more: return client.close()
        client.sendall(more)
listener = socket.socket(socket.AF_UNIX)
listener.bind(place)
listener.listen(64)
if not child.stdout.readline(): sys.exit(1)
print('Starting to serve on ' + place, flush=True)
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
`

describe.skipIf(!requirement(...KUBERNETES_PARTS))(
  'a scheduler that is killed while it speaks to Kubernetes',
  {
    timeout: 240_000,
  },
  () => {
    let lab: Lab
    let kubernetes: KubernetesLab
    let queue: LabQueue
    let steps: string

    const submit = async (...args: readonly string[]): Promise<string> => await queue.submit('--engine', 'k8s', ...args)
    const stopAt = (step: string) => {
      rmSync(join(steps, 'reached'), { force: true })
      writeFileSync(join(steps, 'new'), step)
      renameSync(join(steps, 'new'), join(steps, 'at'))
    }
    const isReached = () => existsSync(join(steps, 'reached'))
    /** Of all pods that were ever made for it. */
    const podsMade = async (id: string): Promise<number> => {
      const path = '/api/v1/namespaces/default/events?fieldSelector=reason%3DSuccessfulCreate'
      const { items } = (await kubernetes.request('GET', path)).body as {
        items: { count?: number; involvedObject: { name: string } }[]
      }
      const own = items.filter(({ involvedObject }) => involvedObject.name.includes(`-${id}-1-0-`))
      return own.reduce((sum, { count = 1 }) => sum + count, 0)
    }

    beforeAll(async () => {
      const environmentOf = ({ directory, environment }: Lab) => ({
        PATH: `${join(directory, 'steps')}:${environment.PATH}`,
      })
      ;({ lab, kubernetes, queue } = await kubernetesQueue({ environmentOf }))
      steps = join(lab.directory, 'steps')
      mkdirSync(steps)
      writeFileSync(join(steps, 'kubectl'), steppingKubectl(steps), { mode: 0o755 })
    })
    afterEach(async () => {
      await queue?.stop()
      rmSync(join(steps, 'at'), { force: true })
    })
    afterAll(async () => {
      await lab?.stop()
    })

    it.each([
      'before GET jobs',
      'after GET jobs',
      'before POST jobs',
      'after POST jobs',
      'before POST services',
      'after POST services',
      'before PATCH jobs',
      'after PATCH jobs',
    ])('killed %s, it hands the job over once', async (step) => {
      const bundles = /services|PATCH/.test(step) ? 2 : 1
      const id = await submit('--bundles', String(bundles), '--env', 'LAB_EXIT=6', '--', 'true')
      stopAt(step)
      queue.work()
      await waitUntil(isReached, `the scheduler to be ${step}`, 60_000)
      await queue.stop()
      await queue.work().ended
      expect(await queue.find(id)).toMatchObject({ state: 'failed', attempt: 1, reason: 'exit 6' })
      expect(await podsMade(id)).toBe(bundles)
    })

    it('cancels the job later if it is killed while it cancels', async () => {
      const id = await submit('--', 'true')
      await queue.work().seen(isJob(id, 'running'))
      stopAt('before DELETE jobs')
      await queue.job('cancel', id)
      await waitUntil(isReached, 'the scheduler to cancel', 60_000)
      await queue.stop()
      await queue.work().ended
      expect((await queue.find(id)).state).toBe('cancelled')
      expect(await kubernetes.kubectl(`get pods -l muster.dev/job=${id} -o name`)).toBe('')
    })

    it('does not start what was cancelled before it arrives', async () => {
      const id = await submit('--', 'true')
      stopAt('before POST jobs')
      queue.work()
      await waitUntil(isReached, 'the scheduler to hand it over', 60_000)
      await queue.stop()
      await queue.job('cancel', id)
      await queue.work().ended
      expect((await queue.find(id)).state).toBe('cancelled')
      const [name = ''] = (await kubernetes.kubectl(`get jobs -l muster.dev/job=${id} -o name`)).trim().split('\n')
      const containers = [{ name: 'main', image: 'none' }]
      const late = {
        metadata: { name: name.replace('job.batch/', '') },
        spec: { template: { spec: { restartPolicy: 'Never', containers } } },
      }
      const { status } = await kubernetes.request('POST', '/apis/batch/v1/namespaces/default/jobs', late)
      expect(status).toBe(409)
      expect(await podsMade(id)).toBe(0)
    })
  },
)
