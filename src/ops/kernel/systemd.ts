/** Units of systemd: where those of a login are, who manages them, and words in them. systemd.unit(5), systemd.syntax(7) */

/** Sets $units, where the login's units are, and $manager, options of systemctl; `ctl` is systemctl with these. */
export const CTL = `if [ "$(id -u)" = 0 ]; then units=/etc/systemd/system manager=--system
else
  units=$HOME/.config/systemd/user manager=--user
  XDG_RUNTIME_DIR=\${XDG_RUNTIME_DIR:-/run/user/$(id -u)}; export XDG_RUNTIME_DIR
fi
ctl() { systemctl $manager "$@"; }
can_supervise() {
  [ -d /run/systemd/system ] && command -v systemctl > /dev/null || return 1
  [ "$(id -u)" = 0 ] || [ -S "$XDG_RUNTIME_DIR/systemd/private" ]
}
`

/** systemd.syntax(7): in quotes, and with %% for what would be a specifier. */
export function unitWord(text: string): string {
  const plain = text.replaceAll(/[\\"]/g, '\\$&').replaceAll('%', '%%')
  return `"${plain.replaceAll('\n', '\\n')}"`
}

/** In a command line variables are replaced, too. */
export function execWord(text: string): string {
  return unitWord(text).replaceAll('$', '$$$$')
}
