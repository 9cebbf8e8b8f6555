#!/usr/bin/env bash
# The tests that are not slow, two processes at a time for the two cores of a small machine: what
# needs the shared Spark session, and the rest, whose output comes at the end.
# The tests in tests/crash start Sparks of their own and speak Spark Connect, which cannot share a
# process with a classic session. Fuzzing on Spark is the largest single part of it; with the
# scheduler's tests on Spark beside it both halves take about as long.
set -uo pipefail
cd "$(dirname "$0")/.."
log=build/test-rest.log
mkdir -p build

run() {
  .venv/bin/pytest "$@"
  local code=$?
  # Arguments may choose nothing of one part.
  [ "$code" = 5 ] && [ "$narrowed" = yes ] && return 0
  return "$code"
}

fuzz=tests/refresh/test_fuzz_on_spark.py

rest() {
  local failed=0
  run --ignore tests/crash -m "not slow and not spark" "$@" || failed=1
  run tests/crash -m "not slow" "$@" || failed=1
  run "$fuzz" tests/schedule -m "spark and not slow" "$@" || failed=1
  return "$failed"
}

narrowed=$([ "$#" -gt 0 ] && echo yes || echo no)
rest "$@" > "$log" 2>&1 &
other=$!
run --ignore tests/crash --ignore tests/schedule --ignore "$fuzz" -m "spark and not slow" "$@"
spark=$?
wait "$other"
rest=$?
cat "$log"
[ "$spark" = 0 ] && [ "$rest" = 0 ]
