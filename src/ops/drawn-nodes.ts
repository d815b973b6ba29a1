/** Nodes and devices that a picture has room for: a login host or an apiserver may name any number. */
const MOST_NODES = 5000
const MOST_GPUS_OF_ALL = 65_536

/** The first ones. */
export function drawnNodes<N>(nodes: readonly N[], gpusOf: (node: N) => number): readonly N[] {
  let gpus = 0
  const end = nodes.findIndex((node, index) => {
    gpus += gpusOf(node)
    return index === MOST_NODES || gpus > MOST_GPUS_OF_ALL
  })
  return end === -1 ? nodes : nodes.slice(0, end)
}
