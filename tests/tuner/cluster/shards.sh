#!/usr/bin/env bash
# Tunes a campaign in 8 shards, of which two are killed and resumed, and compares the merged winners with those of one
# campaign.
#
#   shards.sh simulated | slurm HONE PROJECT
#
# simulated: processes with the environment of an array job. slurm: a Slurm of this machine alone, started here; skipped
# where it is not installed or not to be started.
set -euo pipefail
mode=$1 hone=$2 project=$3
export HONE=$hone HONE_TUNE_SHARDS=$project/scripts/cluster/tune_shards
folder=$(mktemp -d)
campaign=(--op "sum,max" --dtype "f32,f16" --size 2^10 --context both --budget 6s --device host)

skip() {
  echo "SKIPPED: $*"
  exit 0
}

daemons=()
clean_up() {
  for daemon in "${daemons[@]}"; do kill "$daemon" 2>/dev/null || true; done
  wait
  rm -rf "$folder"
}
trap clean_up EXIT

# keys FILE: what its winners serve.
keys() {
  python3 - "$1" <<'END'
import sqlite3, sys
columns = "family, operation, dtype, launch_context, alignment, first0, last0, tuned"
for row in sorted(sqlite3.connect(sys.argv[1]).execute(f"SELECT {columns} FROM winners")): print(*row)
END
}

# run_tasks JOB TASK...: as Slurm starts them, all at once; their process groups go to `tasks`.
run_tasks() {
  local job=$1 task
  shift
  tasks=()
  for task in "$@"; do
    SLURM_ARRAY_JOB_ID=$job SLURM_ARRAY_TASK_ID=$task setsid "$HONE_TUNE_SHARDS" "$folder/campaign" 8 "${campaign[@]}" &
    tasks+=($!)
  done
}

simulate() {
  # Two nodes are lost while the others work. What they had taken stays theirs in this job.
  run_tasks 100 2 5
  until [[ $(find "$folder" -name 'shard-*.sqlite' | wc -l) -ge 2 ]]; do sleep 0.05; done
  for task in "${tasks[@]}"; do kill -KILL -- "-$task"; done
  wait || true
  run_tasks 100 0 1 3
  wait
  if "$HONE_TUNE_SHARDS" --merge "$folder/campaign"; then
    echo "the merge does not say that two shards are not done" >&2 && exit 1
  fi
  run_tasks 101 0 1
  wait
  "$HONE_TUNE_SHARDS" --merge "$folder/campaign"
}

start_slurm() {
  local program
  for program in slurmctld slurmd munged; do
    command -v "$program" >/dev/null || skip "there is no $program (slurm-wlm, munge)"
  done
  [[ $(id -u) == 0 ]] || skip "a Slurm of one's own needs root"
  local state=$folder/slurm node
  node=$(hostname -s)
  mkdir -p "$state"/{ctld,d,munge}
  chown munge "$state/munge" && chmod 755 "$folder" "$state" "$state/munge"
  if ! munge -n >/dev/null 2>&1; then
    mkdir -p /run/munge && chown munge /run/munge
    runuser -u munge -- /usr/sbin/munged --foreground --log-file="$state/munge/log" --pid-file="$state/munge/pid" \
      --seed-file="$state/munge/seed" >/dev/null 2>&1 & daemons+=($!)
  fi
  export SLURM_CONF=$state/slurm.conf
  cat >"$SLURM_CONF" <<END
ClusterName=hone
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
SlurmctldPort=26817
SlurmdPort=26818
AuthType=auth/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/d
SlurmctldPidFile=$state/ctld.pid
SlurmdPidFile=$state/d.pid
SlurmctldLogFile=$state/ctld.log
SlurmdLogFile=$state/d.log
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE OverSubscribe=NO State=UP
END
  slurmctld -D >/dev/null 2>&1 & daemons+=($!)
  slurmd -D -N "$node" >/dev/null 2>&1 & daemons+=($!)
  for ((i = 0; i < 150; ++i)); do
    [[ $(sinfo --noheader --format %t 2>/dev/null) == idle ]] && return
    sleep 0.2
  done
  skip "Slurm does not start here: $(tail -n 2 "$state/ctld.log" "$state/d.log" 2>&1 | tr '\n' ' ')"
}

# submit: the array, without GPUs; waits for the merge behind it, whose state goes to `merged`.
submit() {
  local job
  job=$(cd "$folder" && sbatch --parsable --array=0-7 --gpus-per-task=0 "$project/scripts/slurm/tune.sbatch" \
    "$folder/campaign" "${campaign[@]}")
  echo "job $job"
  if [[ ${1:-} == kill ]]; then
    until [[ $(find "$folder/campaign" -name 'shard-*.sqlite' 2>/dev/null | wc -l) -ge 2 ]]; do sleep 0.05; done
    scancel --signal=KILL --full "${job}_0" "${job}_1" || true
    scancel "${job}_0" "${job}_1" || true
  fi
  until [[ -z $(squeue --noheader) ]]; do sleep 0.5; done
  cat "$folder"/hone-tune-"${job}"_*.out "$folder/hone-merge-$job.out"
}

if [[ $mode == slurm ]]; then
  start_slurm
  submit kill
  submit
else
  simulate
fi
"$hone" tune "${campaign[@]}" --quiet --cache "$folder/alone.sqlite" >"$folder/alone.log"
keys "$folder/alone.sqlite" >"$folder/alone.keys"
keys "$folder/campaign/winners.sqlite" >"$folder/merged.keys"
diff "$folder/alone.keys" "$folder/merged.keys"
"$hone" cache verify --cache "$folder/campaign/winners.sqlite"
echo "$(wc -l <"$folder/merged.keys") winners are the same"
