/** The generated site in a real browser, from files: no page may load anything else. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { renderSite, writeSite } from '../../scripts/generate-site.ts'
import { findProgram, requirement } from '../support/requirements.ts'

/** What a page says of itself, at a width of `innerWidth` pixels. */
type Page = {
  readonly heading: string
  readonly links: number
  readonly brokenImages: readonly string[]
  readonly isTooWide: boolean
}

const LOOK = `({
  heading: document.querySelector('main h1')?.innerText ?? '',
  links: document.querySelectorAll('nav a').length,
  brokenImages: [...document.images].filter((image) => image.naturalWidth === 0).map((image) => image.src),
  isTooWide: document.documentElement.scrollWidth > innerWidth,
})`
const COLOURS = `(() => { const { color, backgroundColor } = getComputedStyle(document.body); return [color, backgroundColor] })()`

describe.skipIf(!requirement('chromium'))('the generated site', () => {
  it('shows every page in a browser, wide and narrow, dark and light, and loads nothing from elsewhere', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-site-'))
    const site = renderSite()
    writeSite(site, directory)
    try {
      await using browser = await Browser.start(join(directory, '.browser'))
      for (const path of site.pages.keys()) {
        await browser.open(pathToFileURL(join(directory, path)).href)
        for (const width of [1280, 390]) {
          await browser.call('Emulation.setDeviceMetricsOverride', {
            ...{ width, height: 900, deviceScaleFactor: 1, mobile: false },
          })
          const { heading, links, brokenImages, isTooWide } = (await browser.evaluate(LOOK)) as Page
          expect(heading, path).not.toBe('')
          expect(links, path).toBeGreaterThan(30)
          expect(brokenImages, path).toEqual([])
          expect(isTooWide, `${path} at ${width} pixels`).toBe(false)
        }
      }
      const schemes = []
      for (const value of ['light', 'dark']) {
        await browser.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] })
        schemes.push(await browser.evaluate(COLOURS))
      }
      expect(schemes).toEqual([
        ['rgb(32, 36, 44)', 'rgb(253, 253, 251)'],
        ['rgb(213, 216, 222)', 'rgb(20, 22, 27)'],
      ])
      expect(browser.requests.length).toBeGreaterThan(site.pages.size)
      expect(browser.requests.filter((url) => !url.startsWith(pathToFileURL(directory).href))).toEqual([])
      expect(browser.complaints).toEqual([])
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})

type Message = { readonly id?: number; readonly method?: string; readonly result?: unknown; readonly params?: unknown }

/** Chromium without a window and without a network, driven over a pipe (Chrome DevTools Protocol, messages end with NUL). */
class Browser implements AsyncDisposable {
  readonly requests: string[] = []
  readonly complaints: string[] = []
  readonly #process: ChildProcess
  readonly #listeners = new Set<(message: Message) => void>()
  #session: string | undefined
  #lastId = 0

  static async start(profile: string): Promise<Browser> {
    const browser = new Browser(profile)
    const { targetId } = (await browser.call('Target.createTarget', { url: 'about:blank' })) as { targetId: string }
    const attached = await browser.call('Target.attachToTarget', { targetId, flatten: true })
    browser.#session = (attached as { sessionId: string }).sessionId
    for (const domain of ['Page', 'Network', 'Log']) await browser.call(`${domain}.enable`)
    return browser
  }

  constructor(profile: string) {
    this.#process = spawn(
      findProgram('chromium') ?? '',
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
        ...['--disable-background-networking', '--disable-component-update', '--host-resolver-rules=MAP * ~NOTFOUND'],
        ...['--disable-dev-shm-usage', '--remote-debugging-pipe', `--user-data-dir=${profile}`],
      ],
      { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] },
    )
    let text = ''
    ;(this.#process.stdio[4] as Readable).setEncoding('utf8').on('data', (chunk: string) => {
      const messages = (text + chunk).split('\0')
      text = messages.pop() ?? ''
      for (const message of messages) this.#handle(JSON.parse(message))
    })
  }

  async open(url: string): Promise<void> {
    const loaded = this.#next(({ method }) => method === 'Page.loadEventFired')
    await this.call('Page.navigate', { url })
    await loaded
  }

  async evaluate(expression: string): Promise<unknown> {
    const { result } = (await this.call('Runtime.evaluate', { expression, returnByValue: true })) as {
      result: { value?: unknown }
    }
    return result.value
  }

  async call(method: string, params: object = {}): Promise<unknown> {
    this.#lastId += 1
    const id = this.#lastId
    const answer = this.#next((message) => message.id === id)
    const session = this.#session === undefined ? {} : { sessionId: this.#session }
    ;(this.#process.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, ...session })}\0`)
    const { result } = await answer
    expect(result, method).toBeDefined()
    return result
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, 'close')
    this.#process.kill()
    await ended
  }

  /** The next message of a kind; a browser that ends instead is an error. */
  #next(isWanted: (message: Message) => boolean): Promise<Message> {
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error('chromium ended'))
      const listener = (message: Message) => {
        if (!isWanted(message)) return
        this.#listeners.delete(listener)
        this.#process.off('close', fail)
        resolve(message)
      }
      this.#listeners.add(listener)
      this.#process.once('close', fail)
    })
  }

  #handle(message: Message): void {
    const params = message.params as { request?: { url: string }; entry?: { text: string } } | undefined
    if (message.method === 'Network.requestWillBeSent') this.requests.push(params?.request?.url ?? '')
    if (message.method === 'Log.entryAdded') this.complaints.push(params?.entry?.text ?? '')
    for (const listener of [...this.#listeners]) listener(message)
  }
}
