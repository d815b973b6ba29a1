/** `train`, a command of embedded hosts: it prints what a training run prints, and uses almost no CPU. For sh and awk. */
export const TRAIN_COMMAND = `#!/bin/sh
# A pretended training run: prints a loss and an accuracy from time to time, and does nothing else.
lr=0.01 batch=64 steps=30 every=2
while [ $# -gt 0 ]; do
  case "$1" in
    --lr) lr=$2 ;;
    --batch) batch=$2 ;;
    --steps) steps=$2 ;;
    --every) every=$2 ;;
    *) echo "usage: train [--lr RATE] [--batch SIZE] [--steps COUNT] [--every SECONDS]" >&2; exit 2 ;;
  esac
  shift 2 || exit 2
done
exec awk -v lr="$lr" -v batch="$batch" -v steps="$steps" -v every="$every" 'BEGIN {
  far = log(lr / 0.01); least = 0.15 + 0.09 * far * far + batch / 1600
  for (step = 1; step <= steps; step++) {
    if (system("sleep " every) != 0) exit 130
    loss = least + 2 * exp(-4 * step / steps) + 0.02 * sin(step * batch)
    printf "step %d/%d loss=%.4f acc=%.3f\\n", step, steps, loss, exp(-loss / 2)
    fflush()
  }
}'
`
