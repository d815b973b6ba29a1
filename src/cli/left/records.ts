/** What Muster keeps for its user on the machine where it runs: shown, and never removed but what it makes anew by itself. */
import type { LeftTraces } from '../../base/left.ts'

export const recordsLeft: LeftTraces = {
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
    queue: { title: 'queue of jobs', keep: 'it is yours; remove it by hand when you need none of its jobs' },
    records: { title: 'records', keep: 'they are yours: results, recordings, journals; remove them by hand' },
    service: { title: 'scheduler as a service', keep: 'to remove it: muster job work --uninstall' },
    compiled: { title: 'compiled code', remove: `rm -rf "$p" && rmdir "\${p%/*}" 2> /dev/null; :`, isBrief: true },
  },
}
