/** The Packing tab over a queue on real hosts: which job holds which device and how busy it was, at three terminal sizes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hostsFileOf, isJob, type LabQueue, labQueue } from './lab-queue.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

/** Lab hosts have no GPU: this prints what nvidia-smi prints for four GPUs, of which the first is busy. */
const NVIDIA_SMI = `#!/bin/sh
case $* in
  *compute-apps*) ;;
  *) while :; do
       echo "0, GPU-0, NVIDIA H200, 93, 61440, 143771, 61, 310.00"
       for each in 1 2 3; do echo "$each, GPU-$each, NVIDIA H200, 0, 4, 143771, 30, 75.00"; done
       sleep 1 || exit
     done ;;
esac
`
const UNTIL_GO = 'until [ -e ~/go ]; do sleep 0.1; done'

describe.skipIf(!canRun)('the Packing tab', () => {
  let lab: Lab
  let queue: LabQueue
  let file = ''

  beforeAll(async () => {
    lab = await startLab({ count: 3, perHost: () => ({ bashrc: 'PATH=~/bin:$PATH\n' }) })
    for (const host of lab.hosts)
      await host.exec(`mkdir -p ~/bin && cat > ~/bin/nvidia-smi <<'END'\n${NVIDIA_SMI}END\nchmod +x ~/bin/nvidia-smi`)
    file = hostsFileOf(lab, 'packing', 'cpu: 8, gpu: 4, memory: 1GiB')
    queue = labQueue(lab, file)
  })
  afterAll(async () => {
    for (const host of lab?.hosts ?? []) await host.exec('touch ~/go')
    await queue?.stop()
    await lab?.stop()
  })

  /** Rows between header and footer in which something is drawn. */
  const usedRows = (console: ConsoleDriver, columns: number, rows: number): number =>
    console
      .cells({ column: 1, row: 2, width: Math.floor(columns * 0.6), height: rows - 4 })
      .filter((row) => row.some(({ text, background }) => text.trim() !== '' || background !== 'default')).length

  it('shows which job holds each device, since when and until when, how busy it is, and why a job waits', async () => {
    const driver = queue.work()
    const big = await queue.submit('--gpu', '4', '--limit', '7200', '--name', 'pretrain', '--', UNTIL_GO)
    await driver.seen(isJob(big, 'running'))
    const shared = await queue.submit('--gpu', '0.5', '--name', 'notebook', '--', UNTIL_GO)
    await driver.seen(isJob(shared, 'running'))
    const wide = await queue.submit(
      ...['--gpu', '4', '--bundles', '3', '--strategy', 'STRICT_SPREAD', '--name', 'wide', '--', UNTIL_GO],
    )
    await using console = await openConsole({
      in: lab,
      args: ['--hosts', file],
      size: [120, 40],
    })
    await console.expectAllOpen()
    await console.leader('4')
    await console.expectScreen(/GPUs 4\.5\/12 held, 7 free, 0\.5 fragmented/)
    await console.expectScreen(/fragmentation: 0\.5 left on a shared GPU/)
    // The hosts that were ready first.
    await console.expectScreen(/A pretrain/)
    await console.expectScreen(/B noteb/)
    await console.expectScreen(new RegExp(`waiting: 1[\\s\\S]*${wide} wide[\\s\\S]*Only`))
    // What nvidia-smi on the hosts reports.
    await console.expectScreen(/93% 60\/140G/)
    await console.expectScreen(/last 10 min: ▄ used {2}▁ held, idle/)

    await console.click('B noteb')
    await console.expectScreen(new RegExp(`B ${shared} notebook · root · 0\\.5 of it`))
    await console.click('A pretrain')
    await console.expectScreen(/m\d GPU \d \(NVIDIA H200\)/)
    await console.expectScreen(new RegExp(`A ${big} pretrain · root · 4 GPUs on m\\d`))
    await console.expectScreen(/\(limit\)/)
    await console.key('Tab')
    await console.expectScreen(/Esc hosts/)
    await console.key('Escape')
    await console.expectScreen(/Tab job lists/)

    await console.key('w')
    await console.type('--gpu 3 --bundles 3\r')
    await console.expectScreen(/3 × \(1 CPU \+ 3 GPU\) PACK:[\s\S]*It would fit if these jobs ended: [\d]+ \w+/)
    await console.key('w')
    await console.expectScreen(/Tab job lists/)
    await console.expectScreen(/fragmentation: /)

    for (const [columns, rows] of [
      [80, 24],
      [240, 67],
      [120, 40],
    ] as const) {
      await console.resize(columns, rows)
      await console.expectScreen(/A (\d )?pretrain/)
      // The heading has room for lines that come and go, so that hosts keep their places.
      await console.until(() => usedRows(console, columns, rows) >= rows - 8, `a picture that fills ${columns}×${rows}`)
    }
    await console.key('Enter')
    await console.expectScreen(new RegExp(`▸${big} +running .*pretrain`))
    for (const host of lab.hosts) await host.exec('touch ~/go')
    await driver.seen(isJob(wide, 'done'))
    await driver.ended
    // The past stays in the strips.
    await console.leader('4')
    await console.expectScreen(/GPUs 0\/12 held, 12 free/)
    await console.expectScreen(/▄ used/)
    expect(await console.quit()).toEqual({ code: 0 })
  })
})
