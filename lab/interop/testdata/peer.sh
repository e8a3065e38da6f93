#!/bin/bash
# A process that locks with redis-cli: see doc.go for its orders. What it sends
# is the recipe of Redis's own documentation.
set -euo pipefail

cli=$1 host=${2%:*} port=${2##*:}
token=$$-$RANDOM$RANDOM$RANDOM

redis() { "$cli" -h "$host" -p "$port" "$@"; }

delete='if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end'
expire='if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end'

try() { [ "$(redis set "$1" "$token" nx px "$2")" = OK ]; }
lock() { until try "$@"; do sleep 0.01; done; }
release() { [ "$(redis eval "$delete" 1 "$1" "$token")" = 1 ]; }
extend() { [ "$(redis eval "$expire" 1 "$1" "$token" "$2")" = 1 ]; }

count() {
  local i v
  for ((i = 0; $(redis exists stop) == 0; i++)); do
    lock "$1" 10000
    v=$(redis get counter)
    sleep 0.002
    redis set counter $((${v:-0} + 1)) >/dev/null
    redis rpush turns "$2" >/dev/null
    release "$1" || return 1
    sleep "0.00$((RANDOM % 10))"
    if ((i % 3 == 2)); then sleep "0.$((RANDOM % 3 + 1))"; fi # as in speak_test.go
  done
}

while read -r order; do
  # shellcheck disable=SC2086 # an order is words
  if $order; then echo yes; else echo no; fi
done
