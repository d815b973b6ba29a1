import { expect, it } from 'vitest'
import { queueName } from '../../../../src/cli/job/open-queue.ts'

it('keeps the name of a cluster that can be a file name', () => {
  expect(queueName({})).toBe('default')
  expect(queueName({ cluster: 'lab_2-west' })).toBe('lab_2-west')
})

it('gives each cluster a queue of its own', () => {
  const clusters = ['東京', '大阪', 'gpu.lab', 'gpu_lab', 'gpu lab', 'a'.repeat(300), 'a'.repeat(301)]
  const names = clusters.map((cluster) => queueName({ cluster }))
  expect(new Set(names).size).toBe(clusters.length)
  for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,80}$/)
  expect(queueName({ cluster: 'gpu.lab' })).toBe('gpu_lab-43680e56')
})
