/**
 * Writes README.md, CHANGELOG.md, CONTRIBUTING.md and docs/ as plain HTML pages to site/ (`npm run site`). The pages have no
 * scripts and load nothing from elsewhere. docs/README.md is the table of contents; a page that it does not name is an error,
 * and so is a link to a page, a file or a heading that does not exist.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'
import { Marked, type Token, type Tokens } from 'marked'

const ROOT = join(import.meta.dirname, '..')
const CONTENTS = 'docs/README.md'
/** What pages show or link to as it is. */
const ASSETS = ['docs/images', 'docs/examples', 'docs/schema']

/** The files of the site by path; assets are copied from the repository's file of the same path. */
export type Site = { readonly pages: ReadonlyMap<string, string>; readonly assets: readonly string[] }

/** @throws Error that names all broken links and all pages that the table of contents lacks */
export function renderSite(): Site {
  const sources = markdownFiles()
  const contents = readContents(readFileSync(join(ROOT, CONTENTS), 'utf8'))
  const named = new Set(contents.flatMap(({ links }) => links.map(({ source }) => source)))
  const unnamed = sources.filter((source) => source !== CONTENTS && !named.has(source))
  const problems: string[] = []
  const pages = new Map(
    sources.map((source) => [
      pagePath(source),
      renderPage(source, readFileSync(join(ROOT, source), 'utf8'), contents, problems),
    ]),
  )
  const assets = ASSETS.flatMap(filesIn)
  problems.push(...unnamed.map((source) => `${CONTENTS} does not name ${source}`), ...brokenLinks({ pages, assets }))
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return { pages, assets }
}

/** One sentence for each link and picture of the pages that leads nowhere. */
export function brokenLinks({ pages, assets }: Site): string[] {
  const files = new Set([...pages.keys(), ...assets])
  const anchors = new Map(
    [...pages].map(([path, html]) => [path, new Set([...html.matchAll(/\bid="([^"]*)"/g)].map(([, id]) => id))]),
  )
  return [...pages].flatMap(([path, html]) =>
    [...html.matchAll(/\b(href|src|srcset)="([^"]*)"/g)].flatMap(([, kind, address = '']) => {
      if (kind === 'href' && /^(https?|mailto):/.test(address)) return []
      const [file = '', anchor] = decodeURI(address).split('#')
      const target = file === '' ? path : posix.normalize(posix.join(posix.dirname(path), file))
      if (!files.has(target)) return [`${path} links to ${address}: there is no such file in the site`]
      if (anchor === undefined || anchors.get(target)?.has(anchor)) return []
      return [`${path} links to ${address}: that page has no such heading`]
    }),
  )
}

/** The id that GitHub gives a heading, without the number of one that is repeated. */
export function headingId(text: string): string {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

type Contents = readonly { readonly title: string; readonly links: readonly { title: string; source: string }[] }[]

/** The sections of the table of contents, each with the first link of each item of its list. */
function readContents(markdown: string): Contents {
  const found: { title: string; links: { title: string; source: string }[] }[] = []
  for (const token of new Marked().lexer(markdown)) {
    if (token.type === 'heading' && token.depth === 2) found.push({ title: token.text, links: [] })
    if (token.type !== 'list') continue
    for (const item of (token as Tokens.List).items) {
      const [link] = linksIn([item])
      if (link === undefined) throw new Error(`${CONTENTS} has an item without a link: ${item.text}`)
      found.at(-1)?.links.push({ title: link.text, source: posix.join(posix.dirname(CONTENTS), link.href) })
    }
  }
  return found
}

function linksIn(tokens: readonly Token[]): Tokens.Link[] {
  return tokens.flatMap((token) =>
    token.type === 'link' ? [token as Tokens.Link] : linksIn(('tokens' in token && token.tokens) || []),
  )
}

function markdownFiles(): string[] {
  const inside = filesIn('docs').filter((name) => name.endsWith('.md'))
  return ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...inside.toSorted()]
}

/** All files below a folder, by their paths in the repository. */
function filesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
}

/** `docs/run.md` → `docs/run.html`, `README.md` → `index.html`. */
function pagePath(source: string): string {
  return source.replace(/README\.md$/, 'index.html').replace(/\.md$/, '.html')
}

function renderPage(source: string, markdown: string, contents: Contents, problems: string[]): string {
  const ids = new Set<string>()
  const sections: { readonly id: string; readonly html: string }[] = []
  const unusedId = (id: string, number = 0): string => {
    const candidate = number === 0 ? id : `${id}-${number}`
    if (ids.has(candidate)) return unusedId(id, number + 1)
    ids.add(candidate)
    return candidate
  }
  let title = source
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth }) {
        const html = this.parser.parseInline(tokens)
        const text = plainText(html)
        const id = unusedId(headingId(text))
        if (depth === 1) title = text
        if (depth === 2) sections.push({ id, html: html.replace(/<\/?a\b[^>]*>/g, '') })
        return `<h${depth} id="${id}">${html}</h${depth}>\n`
      },
      link({ href, tokens }) {
        const [file = '', anchor] = href.split('#')
        const isOurs = !/^[a-z]+:/.test(href)
        const target = isOurs ? [pagePath(file), anchor].filter((part) => part !== undefined).join('#') : href
        return `<a href="${escapeHtml(target)}">${this.parser.parseInline(tokens)}</a>`
      },
      html({ text }) {
        if (!/^(<!--|<\/?(picture|source|img)\b)/.test(text)) problems.push(`${source} has HTML: ${text.trim()}`)
        return text
      },
    },
  })
  const body = marked.parse(markdown, { async: false })
  const path = pagePath(source)
  const to = (target: string): string => posix.relative(posix.dirname(path), target)
  const link = (target: string, text: string, under = ''): string => {
    const isHere = target === path
    return `<li><a href="${to(target)}"${isHere ? ' aria-current="page"' : ''}>${escapeHtml(text)}</a>${isHere ? under : ''}</li>`
  }
  const here = `<ul>${sections.map(({ id, html }) => `<li><a href="#${id}">${html}</a></li>`).join('')}</ul>`
  const menu = contents
    .map(
      ({ title: name, links }) =>
        `<h2>${escapeHtml(name)}</h2><ul>${links.map((each) => link(pagePath(each.source), each.title, here)).join('')}</ul>`,
    )
    .join('\n')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title === 'Muster' ? title : `${title} · Muster`)}</title>
<style>${STYLE}</style>
</head>
<body>
<header><a href="${to('index.html')}">Muster</a> <a href="${to(pagePath(CONTENTS))}">Documentation</a></header>
<main>
${body}</main>
<nav aria-label="Contents">
${menu}
</nav>
</body>
</html>
`
}

function plainText(html: string): string {
  const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
  return html.replace(/<[^>]*>/g, '').replace(/&(#?\w+);/g, (whole, name: string) => entities[name] ?? whole)
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

const STYLE = `
:root { --text: #20242c; --back: #fdfdfb; --soft: #f1f1ee; --line: #d8d8d3; --link: #27569b; --quiet: #5d6470 }
@media (prefers-color-scheme: dark) {
  :root { --text: #d5d8de; --back: #14161b; --soft: #1f2229; --line: #363b45; --link: #7aa6da; --quiet: #9aa1ad }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 80rem; padding: 0 1rem; display: grid; column-gap: 2.5rem;
  grid-template: "header header" auto "nav main" 1fr / 15rem minmax(0, 1fr);
  font: 1rem/1.55 system-ui, sans-serif; color: var(--text); background: var(--back) }
header { grid-area: header; padding: 1rem 0; border-bottom: 1px solid var(--line) }
header a:first-child { font-weight: bold; margin-right: 1.5rem }
main { grid-area: main; padding-bottom: 4rem }
nav { grid-area: nav; font-size: .9rem; padding: 1rem 0 }
nav h2 { font-size: 1em; margin: 1.2em 0 .3em; color: var(--quiet) }
nav ul { list-style: none; margin: 0; padding: 0 }
nav ul ul { padding-left: 1em; border-left: 2px solid var(--line) }
nav [aria-current] { font-weight: bold; color: var(--text) }
a { color: var(--link); text-decoration: none }
a:hover { text-decoration: underline }
h1, h2, h3, h4 { line-height: 1.25; margin: 1.8em 0 .6em }
h1 { margin-top: 1rem }
img { max-width: 100%; height: auto }
code, pre { font: .9em/1.45 ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; background: var(--soft) }
code { padding: .1em .3em; border-radius: 4px; overflow-wrap: anywhere }
pre { padding: .8rem 1rem; border-radius: 8px; overflow-x: auto }
pre code { padding: 0; font-size: 1em; overflow-wrap: normal }
table { display: block; overflow-x: auto; border-collapse: collapse; margin: 1em 0 }
th, td { text-align: left; vertical-align: top; padding: .35em .7em; border: 1px solid var(--line) }
th { background: var(--soft) }
td code { white-space: pre-wrap }
@media (max-width: 55rem) { body { grid-template: "header" auto "main" auto "nav" auto / minmax(0, 1fr) } nav { border-top: 1px solid var(--line) } }
`

/** Writes the site to a directory, in place of what was there. */
export function writeSite({ pages, assets }: Site, directory: string): void {
  rmSync(directory, { recursive: true, force: true })
  for (const [path, html] of pages) {
    mkdirSync(join(directory, dirname(path)), { recursive: true })
    writeFileSync(join(directory, path), html)
  }
  for (const asset of assets) cpSync(join(ROOT, asset), join(directory, asset))
}

if (import.meta.main) {
  const directory = join(ROOT, 'site')
  try {
    const site = renderSite()
    writeSite(site, directory)
    process.stdout.write(`${site.pages.size} pages: ${join(relative(process.cwd(), directory), 'index.html')}\n`)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
    process.exitCode = 1
  }
}
