/** A file that shows which hosts see the same directory: one writes it under a secret name, the others look for it. */
import { randomBytes } from 'node:crypto'

export const PROOF_FILE = '.muster-proof-'
const NAME_BYTES = 12

/** The random end of its name: letters and digits. */
export function newProofName(): string {
  return randomBytes(NAME_BYTES).toString('hex')
}

/** POSIX sh, a function a line. Looking for a new name asks the server, whatever a network file system has cached. */
export const PROOF_FUNCTIONS = [
  // prove DIRECTORY NAME [TEXT]: writes the file. unprove removes it; the script that uses them calls it when the shell ends.
  `PROOF=; unprove() { [ -z "$PROOF" ] || rm -f "$PROOF"; PROOF=; }`,
  `prove() { PROOF=$1/${PROOF_FILE}$2; (umask 077; set -C; exec 9>"$PROOF" && { printf %s "\${3-}" >&9 || { rm -f "$PROOF"; exit 1; }; }) 2>/dev/null || { PROOF=; return 1; }; }`,
  // sweep_proofs DIRECTORY: removes files that a killed shell left over an hour ago.
  `sweep_proofs() { find "$1" -maxdepth 1 -name '${PROOF_FILE}*' -type f -user "$(id -u)" -mmin +60 -exec rm -f {} + 2>/dev/null; }`,
  // proofs DIRECTORY NAME...: prints the names that are there.
  `proofs() { proof_at=$1; shift; for proof; do [ ! -e "$proof_at/${PROOF_FILE}$proof" ] || echo "$proof"; done; }`,
]
