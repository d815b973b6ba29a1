/** `28 %`, below 10 with one decimal; what is nearly nothing or nearly all is not rounded to that: `0.1 %`, `99.8 %`, `<0.1 %`. */
export function formatPercent(fraction: number): string {
  const percent = fraction * 100
  if (percent > 0 && percent < 0.05) return '<0.1 %'
  if (percent >= 99.95 && percent < 100) return '>99.9 %'
  const isFine = percent < 9.95 || (percent >= 99.5 && percent < 100)
  return `${isFine ? Number(percent.toFixed(1)) : Math.round(percent)} %`
}
