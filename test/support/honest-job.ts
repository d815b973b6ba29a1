/**
 * A job that notes what it uses of each device on its host while it runs, and writes to `over` when that is more than there is;
 * a line in `ran` for each time that it began. For sh, in the home directory; wants flock(1).
 */
export const honestJob = (sleep: string): string => `cd; echo $MUSTER_JOB.$RANK.$MUSTER_ATTEMPT >>ran; mkdir -p gpu
for d in $(echo $CUDA_VISIBLE_DEVICES | tr , ' '); do
  flock gpu/lock sh -c 's=$MUSTER_GPU_MILLI; for f in gpu/use.'$d'.*; do [ -e "$f" ] && read -r m <"$f" && s=$((s + m)); done
    [ $s -le 1000 ] || echo $MUSTER_JOB >>over; echo $MUSTER_GPU_MILLI >gpu/use.'$d'.$MUSTER_JOB.$RANK'
done
sleep ${sleep}
rm -f gpu/use.*.$MUSTER_JOB.$RANK`
