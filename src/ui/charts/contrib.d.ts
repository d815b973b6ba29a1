/** What is used of two packages that bring no types. */
declare module 'drawille-canvas-blessed-contrib' {
  export type ChartContext = { readonly _canvas: { frame(): string } }
  export class Canvas {
    constructor(width: number, height: number)
    getContext(): ChartContext
  }
}

declare module 'blessed-contrib/lib/widget/charts/line.js' {
  const Line: {
    readonly prototype: {
      setData(
        data: readonly {
          readonly title: string
          readonly x: readonly string[]
          readonly y: readonly number[]
          readonly style: { readonly line: string }
        }[],
      ): void
    }
  }
  // biome-ignore lint/style/noDefaultExport: it is that package's
  export default Line
}
