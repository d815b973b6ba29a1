/** How many of a test's random cases are tried: all in `npm test`, a fifteenth in `npm run check`, which has one minute for everything. */
export function randomRuns(all: number): number {
  return process.env.MUSTER_FEWER_RUNS === undefined ? all : Math.ceil(all / 15)
}
