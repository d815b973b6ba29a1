/** Everything that may leave something on a host, in the order in which it is listed. Each declares its own. */
import type { LeftSearch } from '../../base/left.ts'
import { filesLeft } from '../../ops/kernel/files.ts'
import { type LeftRoom, roomOfSearch } from '../../ops/kernel/left.ts'
import { iperfLeft } from '../../ops/net/mesh/install-iperf.ts'
import { jobsLeft, type OwnQueue } from '../../scheduler/jobs/left.ts'
import { copyLeft, execLeft, persistLeft } from '../../ssh/left.ts'
import { AREAS } from '../bring-up/areas.ts'

/** What Muster keeps for its user on this machine: listed, but not removed, except what Muster can create again. */
const recordsLeft: LeftSearch = {
  name: 'records',
  find: `state=\${XDG_STATE_HOME:-$HOME/.local/state}/muster
for each in "$state"/*; do
  case \${each##*/} in
    '*') ;;
    jobs)
      for file in "$each"/*.db; do [ ! -f "$file" ] || left_found queue "$file"; done
      for file in "$each"/work-*.sh; do [ ! -f "$file" ] || left_found service "$file"; done;;
    *) left_found records "$each";;
  esac
done
for each in "$HOME"/.config/systemd/user/muster-job-*.service /etc/systemd/system/muster-job-*.service; do
  [ ! -f "$each" ] || left_found service "$each"
done
[ ! -d "\${XDG_CACHE_HOME:-$HOME/.cache}/muster/compiled" ] || left_found compiled "\${XDG_CACHE_HOME:-$HOME/.cache}/muster/compiled"`,
  kinds: {
    queue: { title: 'queue of jobs', keep: 'your data; delete it by hand when you need none of its jobs' },
    records: { title: 'records', keep: 'your data (results, recordings, journals); delete it by hand' },
    service: { title: 'scheduler as a service', keep: 'to remove it: muster job work --uninstall' },
    compiled: { title: 'compiled code', remove: `rm -rf "$p" && rmdir "\${p%/*}" 2> /dev/null; :`, isBrief: true },
  },
}

export async function leftRooms(queue: OwnQueue | undefined): Promise<readonly LeftRoom[]> {
  const areas = await Promise.all(AREAS.map(({ load }) => load()))
  const searches = [jobsLeft(queue), copyLeft, execLeft, persistLeft, filesLeft, recordsLeft]
  return [...areas.flatMap(({ left = [] }) => left), iperfLeft, ...searches.map(roomOfSearch)]
}
