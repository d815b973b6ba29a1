/**
 * Parts of the lines by which launchers start in gangs of an engine (`inGang`): where the bundles are is known only there, so these
 * lines for sh read RANK, MUSTER_HOSTS and MUSTER_ADDRESSES of their bundle.
 */
import { shellQuote } from '../../base/shell-quote.ts'

/** The card of the bundle's own address, if that is an IP address; it has another name on each node. */
export const SET_CARDS = `own=$(echo "$MUSTER_ADDRESSES" | cut -d , -f $((RANK + 1)))
card=$(ip -o addr show to "$own" 2>/dev/null | awk '{ sub(/@.*/, "", $2); print $2; exit }')
case $card in
'' | lo) ;;
*) export NCCL_SOCKET_IFNAME="\${NCCL_SOCKET_IFNAME-$card}" GLOO_SOCKET_IFNAME="\${GLOO_SOCKET_IFNAME-$card}" TP_SOCKET_IFNAME="\${TP_SOCKET_IFNAME-$card}";;
esac
`

/** After `FAIL`. */
export const needs = (program: string): string =>
  `command -v ${shellQuote(program)} > /dev/null || fail "$(echo "\${MUSTER_HOSTS:-this bundle}" | cut -d , -f $((RANK + 1))) has no "${shellQuote(program)}" in PATH"\n`

/** `fail WHY` ends the bundle. */
export const FAIL = `fail() { echo "muster: $1" >&2; [ -z "$MUSTER_WHY" ] || [ -s "$MUSTER_WHY" ] || echo "$1" >> "$MUSTER_WHY"; exit 127; }\n`

/** In each rank, so that it finds the same variables as without a launcher. */
export const asPlainRank = (command: string): string =>
  `sh -c ${shellQuote(`export RANK="$RANK" MUSTER_RANK="$RANK" MUSTER_WORLD_SIZE="$WORLD_SIZE" PYTHONUNBUFFERED="\${PYTHONUNBUFFERED-1}"\n${command}`)}`
