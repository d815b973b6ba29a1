/** What is kept of jobs and pods while a round lasts: there may be thousands, and an API server may send anything. Pure. */
import { type JsonRecord, list, numberOf, record, textOf } from '../../base/json-lines.ts'
import { cut } from './events.ts'
import { BARRED_LABEL, CONTAINER, INDEX_LABEL, KEY_LABEL, QUEUE_LABEL, STRATEGY } from './manifest.ts'

const MOST_MESSAGE = 1_000
/** Containers, gates and conditions of a pod, and kinds of resources of a container. */
const MOST_ENTRIES = 16

export function podParts(pod: JsonRecord): JsonRecord {
  const [metadata, spec, status] = sectionsOf(pod)
  return {
    metadata: { ...metadataParts(metadata, [INDEX_LABEL]), annotations: texts(metadata.annotations, [INDEX_LABEL]) },
    spec: {
      nodeName: cut(spec.nodeName),
      terminationGracePeriodSeconds: numberOf(spec.terminationGracePeriodSeconds),
      schedulingGates: few(spec.schedulingGates).map((gate) => texts(gate, ['name'])),
    },
    status: {
      ...texts(status, ['phase', 'reason']),
      conditions: conditionParts(status, ['PodScheduled', 'DisruptionTarget']),
      containerStatuses: containerParts(status.containerStatuses),
      initContainerStatuses: containerParts(status.initContainerStatuses),
    },
  }
}

export function jobParts(job: JsonRecord): JsonRecord {
  const [metadata, spec, status] = sectionsOf(job)
  const pod = record(record(spec.template)?.spec) ?? {}
  return {
    metadata: {
      ...metadataParts(metadata, [KEY_LABEL, BARRED_LABEL, QUEUE_LABEL]),
      annotations: texts(metadata.annotations, [STRATEGY]),
    },
    spec: {
      parallelism: numberOf(spec.parallelism),
      suspend: spec.suspend === true,
      template: {
        spec: {
          ...(pod.schedulingGroup === undefined ? {} : { schedulingGroup: {} }),
          overhead: amountParts(pod.overhead),
          containers: few(pod.containers).map(sizeParts),
          initContainers: few(pod.initContainers).map(sizeParts),
        },
      },
    },
    status: { conditions: conditionParts(status, ['Complete', 'Failed']) },
  }
}

const sectionsOf = ({ metadata, spec, status }: JsonRecord) =>
  [record(metadata) ?? {}, record(spec) ?? {}, record(status) ?? {}] as const

const few = (value: unknown): readonly JsonRecord[] => list(value).slice(0, MOST_ENTRIES)

/** Those of these fields that are texts. */
const texts = (value: unknown, names: readonly string[]): JsonRecord =>
  Object.fromEntries(
    names.flatMap((name) => {
      const text = record(value)?.[name]
      return typeof text === 'string' ? [[name, cut(text)]] : []
    }),
  )

const metadataParts = (metadata: JsonRecord, labels: readonly string[]): JsonRecord => ({
  ...texts(metadata, ['name', 'uid', 'deletionTimestamp']),
  labels: texts(metadata.labels, labels),
})

const conditionParts = (status: JsonRecord, types: readonly string[]): readonly JsonRecord[] =>
  types.flatMap((type) => {
    const condition = list(status.conditions).find((each) => each.type === type)
    return condition === undefined
      ? []
      : [{ ...texts(condition, ['type', 'status', 'reason']), ...messageOf(condition) }]
  })

const messageOf = ({ message }: JsonRecord): JsonRecord => ({ message: cut(message, MOST_MESSAGE) })

function containerParts(statuses: unknown): readonly JsonRecord[] {
  // The pod may have other containers besides that of the job.
  const isOwn = ({ name }: JsonRecord) => name === CONTAINER
  const all = list(statuses)
  return few([...all.filter(isOwn), ...all.filter((one) => !isOwn(one))]).map((status) => {
    const { waiting, running, terminated } = record(status.state) ?? {}
    const [waits, ended] = [record(waiting), record(terminated)]
    return {
      ...texts(status, ['name']),
      state: {
        ...(waits && { waiting: { ...texts(waits, ['reason']), ...messageOf(waits) } }),
        ...(record(running) && { running: {} }),
        ...(ended && {
          terminated: {
            ...texts(ended, ['reason', 'finishedAt']),
            ...messageOf(ended),
            exitCode: numberOf(ended.exitCode),
          },
        }),
      },
    }
  })
}

const sizeParts = ({ restartPolicy, resources }: JsonRecord): JsonRecord => ({
  restartPolicy: cut(restartPolicy),
  resources: { requests: amountParts(record(resources)?.requests), limits: amountParts(record(resources)?.limits) },
})

const amountParts = (amounts: unknown): JsonRecord =>
  Object.fromEntries(
    Object.entries(record(amounts) ?? {})
      .slice(0, MOST_ENTRIES)
      .map(([name, amount]) => [cut(name), numberOf(amount) ?? cut(textOf(amount))]),
  )
