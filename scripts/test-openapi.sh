#!/usr/bin/env bash
# Tests the service by its OpenAPI document with Schemathesis: requests that the document permits and
# requests that it forbids, with a token of each role. No request may fail with a status or a body
# that the document does not have, and none that the document permits may be refused as malformed. (Two
# checks of Schemathesis are off: they take permitted requests with text in the body for forbidden ones.)
#
# PAIS_BIN names a built program; without it, `pais` is built without optimization. EXAMPLES is the
# number of random requests of the holder for each operation, OTHER_EXAMPLES that of the other roles: 60 make
# about 2,000 requests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh
exec </dev/null

unset PYTHONHOME PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1
tests=$PWD/tests/openapi
environment=$(target_dir)/schemathesis
stamp=$environment/made-for
wanted=$(cat "$tests/requirements.txt" <(python3 -c 'import sys; print(sys.version, sys.prefix)') |
    sha256sum)
if [[ ! -f $stamp || $(<"$stamp") != "$wanted" ]]; then
    say "Making a virtual environment in $environment"
    python3 -m venv --clear "$environment"
    "$environment/bin/python" -m pip install --quiet --requirement "$tests/requirements.txt"
    echo "$wanted" >"$stamp"
fi
if [[ -z ${PAIS_BIN:-} ]]; then
    build_pais dev
    PAIS_BIN=$PAIS
fi
PAIS_BIN=$(realpath "$PAIS_BIN")

folder=$(mktemp -d)
listen=127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
export PAIS__SERVER__DATA_DIR=$folder/data PAIS__LIMITS__REQUESTS_PER_SECOND=0
"$PAIS_BIN" serve --listen "$listen" 2>"$folder/log" &
service=$!
trap 'kill $service 2>/dev/null && wait $service 2>/dev/null; rm -rf "$folder"' EXIT
for _ in $(seq 600); do
    curl -sf "http://$listen/readyz" >/dev/null && break
    kill -0 $service 2>/dev/null || { tail -5 "$folder/log"; fail "the service has ended"; }
    sleep 0.1
done

"$PAIS_BIN" sample blood --rows 300 --output "$folder"
"$PAIS_BIN" anonymize --schema "$folder/blood.schema.json" --job "$folder/blood.job.json" \
    "$folder/blood.csv" --output "$folder/rows.parquet" 2>/dev/null
export PAIS_PARQUET=$folder/rows.parquet

# Schemathesis keeps notes where it runs.
cp "$tests/hooks.py" "$tests/schemathesis.toml" "$folder"

# Streams of events have no end, so they are not fetched here.
run() {
    local role=$1 token
    shift
    say "Testing the OpenAPI document with the role $role"
    token=$("$PAIS_BIN" token create --organization "role-$role" --role "$role" 2>/dev/null)
    (cd "$folder" && SCHEMATHESIS_HOOKS=hooks PYTHONPATH=. "$environment/bin/schemathesis" run \
        "http://$listen/openapi.json" --header "Authorization: Bearer $token" \
        --checks all --exclude-checks missing_required_header,negative_data_rejection \
        --exclude-path "/v1/jobs/{id}/events" --exclude-path "/v1/publications/{id}/events" \
        --continue-on-failure --warnings off "$@") \
        >"$folder/$role" || { cat "$folder/$role"; fail "the role $role found the failures above"; }
    grep -E "generated" "$folder/$role"
}
run holder --phases examples,coverage,fuzzing --max-examples "${EXAMPLES:-25}"
for role in officer admin recipient auditor; do
    run $role --phases examples,fuzzing --max-examples "${OTHER_EXAMPLES:-5}"
done
