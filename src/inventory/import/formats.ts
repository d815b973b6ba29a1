/** The formats that `muster import` reads. A new one is a file with an `ImportFormat`, and a line here. */
import { ansible } from './ansible.ts'
import { clush } from './clush.ts'
import { clusterssh } from './clusterssh.ts'
import type { ImportFormat } from './format.ts'
import { genders } from './genders.ts'
import { hostfile } from './hostfile.ts'
import { list } from './list.ts'
import { ray } from './ray.ts'
import { ssh } from './ssh.ts'

export const FORMATS: readonly ImportFormat[] = [ansible, clush, clusterssh, genders, hostfile, list, ray, ssh]
