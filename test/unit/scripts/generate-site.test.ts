import { expect, test } from 'vitest'
import { brokenLinks, headingId, renderSite } from '../../../scripts/generate-site.ts'

test('names the links and pictures of a page that lead nowhere', () => {
  const pages = new Map([
    [
      'index.html',
      '<h1 id="one"></h1><a href="docs/run.html#copy"></a><a href="#one"></a><a href="https://x.org/"></a>',
    ],
    [
      'docs/run.html',
      '<h2 id="copy"></h2><a href="../index.html#two"></a><a href="gone.html"></a><img src="https://x.org/a.svg">',
    ],
  ])
  expect(brokenLinks({ pages, assets: ['docs/images/a.svg'] })).toEqual([
    'docs/run.html links to ../index.html#two: that page has no such heading',
    'docs/run.html links to gone.html: there is no such file in the site',
    'docs/run.html links to https://x.org/a.svg: there is no such file in the site',
  ])
})

test('gives headings the ids that GitHub gives them', () => {
  expect(headingId('Watch resources: `muster net watch [TARGET]`')).toBe('watch-resources-muster-net-watch-target')
  expect(headingId('--json, and what it_prints — 3 ways')).toBe('--json-and-what-it_prints--3-ways')
})

test('every document is in the table of contents, and no link of it is broken', () => {
  const { pages } = renderSite()
  expect(pages.get('index.html')).toContain('<a href="docs/security.html">')
  expect(pages.get('docs/run.html')).toContain('<a href="run.html" aria-current="page">')
})
