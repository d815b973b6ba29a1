/** Loads the chart library when a chart is first drawn, because that takes long. */
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
