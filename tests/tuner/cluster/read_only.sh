#!/usr/bin/env bash
# 64 processes that start at once find their winner in one read-only cache, compile nothing, and leave nothing behind.
#
#   read_only.sh HONE
set -euo pipefail
hone=$1 processes=64
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT

"$hone" tune --device host --op sum --size 4096 --budget 5s --quiet --cache "$folder/own.sqlite" >/dev/null
mkdir "$folder/shared"
"$hone" cache snapshot "$folder/shared/winners.sqlite" --cache "$folder/own.sqlite" >/dev/null
chmod 0555 "$folder/shared"
before=$(sha256sum "$folder/shared/winners.sqlite")
head -c 16384 /dev/zero >"$folder/zeros.bin"

pids=()
for ((i = 0; i < processes; ++i)); do
  # Without the cache there would be an error, for nothing is tuned.
  "$hone" reduce "$folder/zeros.bin" --dtype f32 --device host --on-miss error --json \
    --cache "ro:$folder/shared/winners.sqlite" >"$folder/$i.json" 2>"$folder/$i.err" & pids+=($!)
done
failed=0
for i in "${!pids[@]}"; do
  if ! wait "${pids[$i]}"; then
    failed=$((failed + 1))
    cat "$folder/$i.err" >&2
  fi
done
found=$(grep -l '"cache"' "$folder"/*.json | wc -l)
echo "$((processes - failed)) of $processes processes succeeded, $found of them from the cache"
[[ $failed == 0 && $found == "$processes" ]]
[[ $(sha256sum "$folder/shared/winners.sqlite") == "$before" ]]
[[ $(find "$folder/shared" -type f | wc -l) == 1 ]]
