/** Whether the file that the environment is made from names Ray. Pure. */
import { sectionOf } from '../../inventory/section.ts'
import { section } from '../env/section.ts'
import type { Declared } from '../kernel/area.ts'

export type EnvironmentSource = {
  /** As hosts.yaml has it. */
  readonly path: string
  /** `unknown`: it was not read, or it does not say what is in it. */
  readonly namesRay: 'yes' | 'no' | 'unknown'
  /** It names every package; else others may come with those that it names. */
  readonly isComplete: boolean
}

export function sourceOf({ inventory, files }: Declared): EnvironmentSource | undefined {
  const environment = sectionOf(inventory, section)
  const path = environment?.file
  if (environment === undefined || path === undefined) return undefined
  const file = files?.get(path)
  const isComplete = (environment.kind === 'venv' && path.endsWith('.toml')) || path.endsWith('uv.lock')
  const text = file?.kind === 'text' ? file.text : ''
  if (text === '' || environment.kind === 'docker') return { path, namesRay: 'unknown', isComplete }
  const names = environment.kind === 'conda' ? CONDA : isComplete ? LOCK : REQUIREMENT
  return { path, namesRay: names.test(text) ? 'yes' : 'no', isComplete }
}

/** A requirement of pip, also one by its file or address. */
const REQUIREMENT = /^\s*(ray\s*($|[[=<>!~;@#])|.*\bray-\d)/im
/** `name = "ray"` of uv.lock and pylock.toml. */
const LOCK = /^\s*name\s*=\s*["']ray["']/m
/** `- ray-default=2.9`, `- conda-forge::ray-core`, `- ray[default]` for pip; lists of packages have a line each. */
const CONDA = /^\s*(-\s*)?["']?([\w-]+::)?ray(-[a-z]+)?\s*["']?\s*($|[[=<>!~;@#\s])|\/ray-(core|default|all)-\d/m
