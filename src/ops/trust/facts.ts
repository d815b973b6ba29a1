/** The facts for trust: the account's SSH files, its key for the mesh, and the public host keys. */
import type { Fact, FactSet } from '../kernel/fact.ts'
import { type FileState, fileFact } from '../kernel/files.ts'

export type OwnKey =
  /** `obstacle`: why the host cannot make one. */
  | { readonly kind: 'none'; readonly obstacle?: string }
  /** `publicKey`: type and base64, no comment. */
  | { readonly kind: 'key'; readonly publicKey: string }
  | { readonly kind: 'unusable'; readonly because: string }

export type TrustFacts = {
  readonly key: OwnKey
  /** Type and base64 of each. */
  readonly hostKeys: readonly string[]
  readonly authorizedKeys: FileState
  readonly knownHosts: FileState
  readonly config: FileState
}

/** A key of ed25519 without a comment, as a regular expression. */
export const PUBLIC_KEY = 'ssh-ed25519 [A-Za-z0-9+/]{68}'

const keyFact: Fact<OwnKey> = {
  script: `f=$HOME/.ssh/id_muster
command -v ssh-keygen > /dev/null || { echo 'unusable there is no ssh-keygen'; return; }
if [ ! -e "$f" ]; then
  if [ ! -e "$HOME/.ssh" ]; then [ -w "$HOME" ] && echo none || echo 'none the home directory is not writable'
  elif [ ! -d "$HOME/.ssh" ]; then echo 'none ~/.ssh is not a directory'
  elif [ -w "$HOME/.ssh" ]; then echo none
  else echo 'none ~/.ssh is not writable'; fi
  return
fi
ssh-keygen -y -P '' -f "$f" || echo 'unusable ssh-keygen cannot read it'`,
  parse(text) {
    const line = text.split('\n').at(-1) ?? ''
    if (line === 'none') return { kind: 'none' }
    if (line.startsWith('none ')) return { kind: 'none', obstacle: line.slice('none '.length) }
    if (line.startsWith('unusable ')) return { kind: 'unusable', because: line.slice('unusable '.length) }
    const publicKey = new RegExp(`^(${PUBLIC_KEY})(?: |$)`).exec(line)?.[1]
    return publicKey === undefined ? undefined : { kind: 'key', publicKey }
  },
}

/** More would only fill the known_hosts of the other hosts. */
const MOST_KEYS = 16
/** Characters: an RSA key of 16,384 bits has 2,740. */
const MOST_KEY = 4096

/**
 * The keys of the server of this session: the sshd above this process, with the configuration that it was started
 * with. Root asks sshd itself and reads the private keys; others read the public keys beside them. A server that is no sshd
 * names its keys in MUSTER_HOST_KEYS.
 */
const hostKeysFact: Fact<readonly string[]> = {
  script: `p=$$ file=/etc/ssh/sshd_config
while [ "\${p:-1}" -gt 1 ]; do
  title=$(tr '\\000' ' ' < /proc/$p/cmdline)
  case $title in
    'sshd: /'* | /*sshd' '*)
      case $title in *' -f '*) file=\${title#* -f }; file=\${file%% *};; esac
      break;;
  esac
  p=$(sed -n 's/^PPid:[[:space:]]*//p' /proc/$p/status)
done
keys=\${MUSTER_HOST_KEYS-}
[ -n "$keys" ] || [ "$(id -u)" != 0 ] || keys=$(sshd -T -f "$file" -C user=root,host=localhost,addr=127.0.0.1 | sed -n 's/^hostkey //p')
[ -n "$keys" ] || keys=$(sed -n 's/^[[:space:]]*[Hh][Oo][Ss][Tt][Kk][Ee][Yy][[:space:]=]*//p' "$file" "$file".d/*.conf)
[ -n "$keys" ] || keys=$(ls /etc/ssh/ssh_host_*_key.pub)
for k in $keys; do
  k=\${k%.pub}
  ssh-keygen -y -P '' -f "$k" || cat "$k.pub"
done`,
  parse(text) {
    const keys = text.split('\n').flatMap((line) => {
      const key = /^((?:ssh|ecdsa|sk)-[\w@.-]+ [A-Za-z0-9+/]+={0,2})(?: |$)/.exec(line)?.[1]
      return key === undefined || key.length > MOST_KEY ? [] : [key]
    })
    return keys.length === 0 ? undefined : [...new Set(keys)].slice(0, MOST_KEYS).toSorted()
  },
}

export const trustFacts: FactSet<TrustFacts> = {
  key: keyFact,
  hostKeys: hostKeysFact,
  authorizedKeys: fileFact('~/.ssh/authorized_keys'),
  knownHosts: fileFact('~/.ssh/known_hosts'),
  config: fileFact('~/.ssh/config'),
}
