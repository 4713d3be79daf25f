#!/usr/bin/env bash
# Measures the release build under load: measure.sh load|soak|peaks [options of the script].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh
exec </dev/null

script=scripts/load/${1:?name a script: load, soak or peaks}.py
[[ -f $script ]] || fail "there is no $script"
[[ $1 != load ]] || scripts/setup.sh wrk
shift
build_pais release
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$script" "$PAIS" "$@"
