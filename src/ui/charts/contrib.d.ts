/** What is used of two packages that bring no types. */
declare module 'drawille-canvas-blessed-contrib' {
  export type ChartContext = {
    readonly _canvas: { frame(): string }
    fillStyle: string
    /** In dots: a cell has two across and four down. */
    fillText(text: string, x: number, y: number): void
    beginPath(): void
    moveTo(x: number, y: number): void
    lineTo(x: number, y: number): void
  }
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
