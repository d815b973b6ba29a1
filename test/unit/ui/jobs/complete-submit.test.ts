import { expect, it } from 'vitest'
import { completeSubmit } from '../../../../src/ui/jobs/complete-submit.ts'

const OPTIONS = ['--gpu', '--name', '--on']
const VALUES = { '--launch': ['mpi', 'accelerate'], '--after': ['105', '9'] }

it.each([
  ['--g', { from: 0, word: '--g', kind: OPTIONS }],
  ['--gpu 1 --n', { from: 8, word: '--n', kind: OPTIONS }],
  ['--on m', { from: 5, word: 'm', kind: 'host-set' }],
  ['--on=m[1-2],@g', { from: 12, word: '@g', kind: 'host-set' }],
  ['--gpu 1 --on ', { from: 13, word: '', kind: 'host-set' }],
  ['--launch ac', { from: 9, word: 'ac', kind: VALUES['--launch'] }],
  ['--gpu 1 --launch=', { from: 17, word: '', kind: VALUES['--launch'] }],
  ['--after 9,10', { from: 10, word: '10', kind: ['105'] }],
  ['--launch mpi --n', { from: 13, word: '--n', kind: OPTIONS }],
  ['--launch mpi -- ./ac', { from: 16, word: './ac', kind: 'path' }],
  ['--copy-dir ./da', { from: 11, word: './da', kind: 'path' }],
  ['--gpu 1 -- ./tr', { from: 11, word: './tr', kind: 'path' }],
  ['--gpu 1 -- ls --co', { from: 14, word: '--co', kind: 'path' }],
  ['python ./tr', { from: 7, word: './tr', kind: 'path' }],
])('completes the end of %j', (text, completing) => {
  expect(completeSubmit(text, { options: OPTIONS, values: VALUES })).toMatchObject(completing)
})
