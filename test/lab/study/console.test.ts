/** A study in the console while it runs on hosts behind real OpenSSH: its line, its trials and their logs, and how it is stopped and continued. */
import { afterAll, afterEach, beforeAll, describe, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'setsid')

describe.skipIf(!canRun)('a study in the console', { timeout: 120_000 }, () => {
  let lab: Lab
  let queue: LabQueue
  let console: ConsoleDriver | undefined

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    queue = labQueue(lab, hostsFileOf(lab, 'console'))
  })
  afterEach(async () => {
    await console?.close()
    await queue.stop()
  })
  afterAll(async () => await lab?.stop())

  const READ = { whileBusy: true }

  it('shows trials and their logs while they run, and stops and continues it', async () => {
    const command = 'echo "begin $size"; echo loss=$size; until [ -e ~/go ]; do sleep 0.05; done'
    const options = ['--param', 'size=int:1:6', '--metric', 'min:loss', '--method', 'grid', '--at-once', '2']
    await queue.study('create', 'wf', ...options, '--', command)
    const { ended } = queue.work()
    console = await openConsole({ in: lab, args: ['--hosts', `${lab.directory}/console.yaml`], size: [120, 40] })
    await console.expectAllOpen()
    await console.leader('5')
    await console.expectScreen(/▸study +▒+·+ 0\/6 .*wf · grid/, READ)
    await console.key('Enter')
    await console.expectScreen(/study wf[\s\S]*0\/6 +2 open[\s\S]*▸0 +running +(1|-) +1 +m[12]/, READ)
    await console.expectScreen(/where it runs|It looks for the smallest loss/, READ)
    await console.key('Enter')
    await console.expectScreen(/job 1 [\s\S]*begin 1[\s\S]*loss=1/, READ)
    await console.key('q', 'c')
    await console.expectScreen(/Stop study wf\?/, READ)
    await console.key('y')
    await console.expectScreen(/0\/6 stopped +2 open/, READ)
    await console.key('m')
    await console.expectScreen(/More trials of wf/, READ)
    await console.key('Enter')
    await console.expectScreen(/0\/6 +2 open/, READ)
    for (const host of lab.hosts) await host.exec('touch go')
    await console.expectScreen(/6\/6 done[\s\S]*▸0 ★ +done +1 +1 +m[12]/, READ)
    await console.key('Right')
    await console.expectScreen(/loss over size/, READ)
    await ended
  })
})
