// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are expansions of the shell
/**
 * POSIX sh, a function an entry: `d=$(temporary "${TMPDIR:-/tmp}") || exit 1` makes a directory that no other account can enter or
 * rename. A name in it then stays what it was. The text has no apostrophe, exclamation mark, backslash or line break, so that it may
 * stand in a command line for any login shell.
 */
export const HOST_TEMPORARY = [
  // trusted DIRECTORY OWNER: succeeds if only this account, root and OWNER can rename what is in the directory. A group that has the
  // account's name counts as private, unless an access list (+) lets others in.
  'trusted() { ls -ldn "$1/." | ( read -r a x u g x; case $u in 0|"$2"|"$(id -u)") ;; *) echo "muster: ${1:-/} belongs to another account. Set TMPDIR to a directory of your own." >&2; exit 1;; esac; case $a in ?????????[tT]*) exit 0;; ????????w*|?????w????+*) ;; ?????w*) [ "$g" = 0 ] && exit 0; [ "$g" = "$(id -g)" ] && [ "$(id -gn)" = "$(id -un)" ] && exit 0;; *) exit 0;; esac; echo "muster: other accounts can replace files in ${1:-/}. Set TMPDIR to a directory of your own, or run: chmod +t ${1:-/}" >&2; exit 1 ); }',
  // The directories above count too. In a user namespace / may belong to an account that stands for root.
  'temporary() { o=$(ls -ldn / | ( read -r x x o x; echo "$o" )); p=$(CDPATH= cd -P -- "$1" && pwd -P) && c=${p%/} && while trusted "$c" "$o" || exit 1; [ -n "$c" ]; do c=${c%/*}; done && mktemp -d "$p/muster.XXXXXX" || { echo "muster: cannot make a temporary directory in $1. Set TMPDIR to a directory of your own that has room." >&2; exit 1; }; }',
] as const
