/** The states of PBS's nodes, as its controller reports them. */
import { sectionOf } from '../../../src/inventory/hosts-yaml-schema.ts'
import { defineArea } from '../../../src/ops/kernel/area.ts'
import { blockedBy, operationId } from '../../../src/ops/kernel/operation.ts'
import { type PbsSpec, section } from './section.ts'

/** The state of each node, by its name. */
type Facts = { readonly nodes: ReadonlyMap<string, string> }

export const area = defineArea<PbsSpec, Facts>({
  name: 'pbs',
  wantedOf: ({ inventory }) => sectionOf(inventory, section),
  hostsOf: ({ controller }) => [controller],
  factsOf: () => ({
    nodes: {
      script: 'limited pbsstat',
      parse(text) {
        const lines = text.split('\n').map((line) => /^([\w.-]{1,100}) ([a-z_]{1,30})[*~#!%$@^-]?$/.exec(line.trim()))
        if (lines.includes(null)) return undefined
        return new Map(lines.map((match) => [match?.[1] ?? '', match?.[2] ?? '']))
      },
    },
  }),
  plan: (_, { nodes }, { facts }) =>
    [...facts].map(([host, { facts: own }]) => {
      const blocked = (id: string, cause: string) => blockedBy({ host, gravity: 'blocker', id, cause })
      const states = own.nodes.kind === 'known' ? own.nodes.value : new Map<string, string>()
      const missing = nodes.filter((node) => !states.has(node))
      const verdict =
        own.nodes.kind === 'unknown'
          ? blocked('unknown', `cannot determine the states of the nodes: ${own.nodes.because}`)
          : missing.length > 0
            ? blocked('not-a-node', `PBS does not know ${missing.join(', ')}`)
            : ({ kind: 'nothing', because: `PBS knows all ${nodes.length} nodes` } as const)
      return { id: operationId('pbs', 'nodes', host), area: 'pbs', host, title: 'nodes', after: [], verdict }
    }),
  async verify({ nodes }, { facts }) {
    return [...facts].flatMap(([host, { facts: own }]) =>
      own.nodes.kind === 'unknown'
        ? []
        : nodes.flatMap((node) => {
            const state = own.nodes.kind === 'known' ? own.nodes.value.get(node) : undefined
            const isUp = state !== undefined && /^(idle|allocated|mixed|completing)$/.test(state)
            const hint = `scontrol show node ${node} says why.`
            return isUp ? [] : [{ host, gravity: 'blocker' as const, id: 'node', cause: `${node} is ${state}`, hint }]
          }),
    )
  },
})
