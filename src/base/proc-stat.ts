/**
 * Reads /proc/PID/stat on hosts (proc_pid_stat(5)). The name of a process is any 15 bytes between parentheses, line breaks and
 * parentheses too, so that what follows it is found from the end. No apostrophe is in these texts.
 */

/** For sh: `read_stat FILE` puts the whole file into `s`, without line breaks. It fails if there is none. */
export const READ_STAT =
  'read_stat() { s= part=; { while IFS= read -r part || [ -n "$part" ]; do s=$s$part; done <"$1"; } 2>/dev/null; [ -n "$s" ]; }\n'

/**
 * First rule of an awk program, with LC_ALL=C, that reads such files one after another: the rules behind it run once for each process,
 * with its `pid`, and `stat[1]` its state, `stat[2]` its parent, `stat[3]` its group, `stat[4]` its session, and so on. The end of a
 * file is the line with all its numbers: a name has no room for so many.
 */
export const EACH_STAT =
  '{ file = file $0; rest = file; sub(/.*[)] /, "", rest); if (split(rest, stat, " ") < 30) next; pid = file + 0; file = "" }'
