/** The library of the charts is loaded when they are first drawn: it takes long to start. */
export type LineChart = typeof import('./line-chart.ts').lineChart

export class LazyLineChart {
  #draw: LineChart | undefined
  #isLoading = false

  /** Undefined: not loaded yet. */
  get draw(): LineChart | undefined {
    return this.#draw
  }

  /** Does nothing after the first call. */
  load(onLoaded: () => void, onFailed: (error: unknown) => void): void {
    if (this.#isLoading) return
    this.#isLoading = true
    import('./line-chart.ts').then(({ lineChart }) => {
      this.#draw = lineChart
      onLoaded()
    }, onFailed)
  }
}
