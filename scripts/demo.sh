#!/usr/bin/env bash
# A demonstration on public data, by curl: a hospital uploads 45,222 census records, has them
# anonymized, and grants the release to the blood transfusion service, which downloads it; another
# recipient cannot see it. Runs in a temporary directory, which is removed at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

adult=tests/data/adult
work=''
service=''
reader=''

clean_up() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    [[ -z $reader ]] || kill "$reader" 2>/dev/null || true
    [[ -z $service ]] || stop_service "$service" "$work/data"
    if [[ $status -ne 0 && -s $work/service.log ]]; then
        echo "demo: the last lines of the service's log:" >&2
        tail -n 20 "$work/service.log" >&2
    fi
    [[ -z $work ]] || rm -rf "$work"
    exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Prints a JSON document on one line, with long lists, objects and texts shortened.
shorten() {
    python3 -c '
import json, sys

def short(value, depth=0):
    if isinstance(value, list):
        keep = 3 if depth < 2 else 2
        more = [f"… {len(value) - keep} more"] if len(value) > keep else []
        return [short(item, depth + 1) for item in value[:keep]] + more
    if isinstance(value, dict):
        keep = 14 if depth == 0 else 8 if depth == 1 else 4
        cut = {name: short(item, depth + 1) for name, item in list(value.items())[:keep]}
        if len(value) > keep:
            cut["…"] = f"{len(value) - keep} more"
        return cut
    if isinstance(value, str) and len(value) > 120:
        return value[:117] + "…"
    if isinstance(value, float):
        return float(f"{value:.6g}")
    return value

text = sys.stdin.read()
try:
    text = json.dumps(short(json.loads(text)), ensure_ascii=False)
except ValueError:
    pass
limit = int(sys.argv[1])
print(text if len(text) <= limit else text[:limit - 1] + "…")
' "${1:-400}"
}

# Prints the value of a Python expression; `it` is the last answer.
field() {
    python3 -c 'import json, sys; it = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' \
        "$work/answer" "$1"
}

# print_call METHOD PATH BODY STATUS: prints a call and its answer, which is in $work/answer.
print_call() {
    printf '%s%s %s%s %s\n' "$BOLD" "$1" "$2" "$PLAIN" "$3"
    printf '  %s%s%s %s\n' "$FAINT" "$4" "$PLAIN" "$(shorten 400 <"$work/answer")"
}

# call STATUS TOKEN METHOD PATH [arguments of curl …]: makes and prints a call, and fails unless the
# answer has the status. The answer is in $work/answer.
call() {
    local expected=$1 token=$2 method=$3 path=$4 status argument shown=''
    shift 4
    for argument in "$@"; do
        case $argument in
            '{'*) shown=$(shorten 160 <<<"$argument") ;;
            @*) shown="$argument" ;;
        esac
    done
    status=$(http --request "$method" --header "Authorization: Bearer $token" \
        --output "$work/answer" --write-out '%{http_code}' "$@" "$address$path")
    print_call "$method" "$path" "$shown" "$status"
    [[ $status == "$expected" ]] || fail "$method $path: expected status $expected, got $status"
}

# post STATUS TOKEN PATH BODY
post() {
    call "$1" "$2" POST "$3" --header 'Content-Type: application/json' --data-binary "$4"
}

build_pais dev
work=$(mktemp -d "${TMPDIR:-/tmp}/pais-demo.XXXXXX")

say "Starting the service on an embedded PostgreSQL in $work"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
address=http://127.0.0.1:$port
# The demo does not use a database of the caller's environment.
env -u DATABASE_URL "$PAIS" serve --listen "127.0.0.1:$port" --data-dir "$work/data" \
    >"$work/service.log" 2>&1 &
service=$!
wait_ready "$address" "$service" || fail "the service did not start"
echo "$address is ready"

say "An administrator's token, made on the command line; an administrator makes organizations and tokens, and sees no rows"
echo "pais token create --organization operators --role admin"
admin=$(env -u DATABASE_URL "$PAIS" token create --organization operators --role admin \
    --data-dir "$work/data" 2>>"$work/service.log")
echo "  ${admin:0:12}…"

say "Organizations and their tokens"
for name in hospital bts insurer; do
    post 201 "$admin" /v1/organizations "{\"name\": \"$name\"}"
done
post 201 "$admin" /v1/tokens '{"organization": "hospital", "role": "holder", "label": "demo"}'
holder=$(field 'it["token"]')
post 201 "$admin" /v1/tokens '{"organization": "hospital", "role": "officer", "label": "privacy officer"}'
officer=$(field 'it["token"]')
post 201 "$admin" /v1/tokens '{"organization": "bts", "role": "recipient", "label": "demo"}'
recipient=$(field 'it["token"]')
post 201 "$admin" /v1/tokens '{"organization": "insurer", "role": "recipient", "label": "demo"}'
stranger=$(field 'it["token"]')

say "The privacy officer's policy: what no job, release or grant of the hospital may be below; and she approves each release"
call 200 "$officer" PUT /v1/policy --header 'Content-Type: application/json' --data-binary \
    '{"k_min": 10, "l_min": 2, "c_max": 0.5, "sensitive_values": {"marital-status": ["Divorced", "Separated"]}, "recipients": ["bts"], "require_approval": true}'

say "The hospital's taxonomies: how categorical values may be generalized"
: >"$work/taxonomies"
for name in workclass education occupation relationship race sex native-country; do
    body=$(python3 -c 'import json, sys
print(json.dumps({"name": sys.argv[1], "root": json.load(open(sys.argv[2]))["root"]}))' \
        "$name" "$adult/taxonomies/$name.json")
    post 201 "$holder" /v1/taxonomies "$body"
    echo "$name $(field 'it["id"]')" >>"$work/taxonomies"
done

say "The dataset: 13 quasi-identifiers, one sensitive column, one class"
body=$(python3 - "$work/taxonomies" <<'PYTHON'
import json, sys

taxonomies = dict(line.split() for line in open(sys.argv[1]))
header = ("age workclass fnlwgt education education-num marital-status occupation relationship "
          "race sex capital-gain capital-loss hours-per-week native-country income").split()
roles = {"marital-status": "sensitive", "income": "class"}
columns = []
for name in header:
    column = {"name": name, "role": roles.get(name, "quasi_identifier")}
    if name in taxonomies:
        column["taxonomy"] = taxonomies[name]
    elif name not in roles:
        column["kind"] = "numeric"
    columns.append(column)
print(json.dumps({"name": "adult", "description": "UCI Adult, complete records", "columns": columns}))
PYTHON
)
post 201 "$holder" /v1/datasets "$body"
dataset=$(field 'it["id"]')

say "The raw rows: $(wc -c <"$adult/adult.csv.gz") bytes of compressed CSV"
call 201 "$holder" POST "/v1/datasets/$dataset/submissions" --header 'Content-Type: text/csv' \
    --header 'Content-Encoding: gzip' --data-binary "@$adult/adult.csv.gz"

say "The job: anyone who knows up to 4 values of a person finds at least 20 matching records, and infers a divorce or separation with at most 20 % confidence"
definition="{\"dataset_id\": \"$dataset\", \"privacy\": {\"model\": \"lkc\", \"l\": 4, \"k\": 20, \"c\": 0.2, \"sensitive_values\": {\"marital-status\": [\"Divorced\", \"Separated\"]}}, \"utility\": {\"objective\": \"classification\"}, \"release\": true}"
# The job may be faster than printing, so its events are requested before anything is printed.
status=$(http --header "Authorization: Bearer $holder" --header 'Content-Type: application/json' \
    --data-binary "$definition" --output "$work/answer" --write-out '%{http_code}' "$address/v1/jobs")
job=$(<"$work/answer")
job=${job#*'"id":"'}
job=${job%%'"'*}
# The stream ends after the event `end`, which has the job.
exec {events}< <(http --no-buffer --max-time 600 --header "Authorization: Bearer $holder" \
    "$address/v1/jobs/$job/events")
print_call POST /v1/jobs "$(shorten 160 <<<"$definition")" "$status"
[[ $status == 202 ]] || fail "the job was refused"
printf '%sGET /v1/jobs/%s/events%s\n' "$BOLD" "$job" "$PLAIN"
python3 -c '
import json, sys

event = None
for line in sys.stdin:
    name, _, value = line.rstrip("\n").partition(": ")
    if name == "event":
        event = value
    elif name == "data" and event == "progress":
        now = json.loads(value)
        done = round(20 * now["progress"])
        print("  [%s%s] %3d %%  %s %s, %d rows, %d steps" % (
              "#" * done, "." * (20 - done), 100 * now["progress"], now["status"],
              now.get("phase") or "", now["rows_read"], now["steps_done"]), flush=True)
    elif name == "data" and event == "end":
        open(sys.argv[1], "w").write(value)
' "$work/answer" <&"$events" &
reader=$!
exec {events}<&-
wait "$reader" || fail "the stream of events was interrupted"
reader=''
printf '  %send%s %s\n' "$FAINT" "$PLAIN" "$(shorten 400 <"$work/answer")"
[[ $(field 'it["status"]') == succeeded ]] || fail "the job did not succeed"
release=$(field 'it["release_id"]')
seconds=$(python3 -c '
import datetime, json, sys

job = json.load(open(sys.argv[1]))
created, ended = (datetime.datetime.strptime(job[name][:19] + job[name][19:-1].ljust(7, "0"),
                                             "%Y-%m-%dT%H:%M:%S.%f")
                  for name in ("created_at", "ended_at"))
print("%.1f" % (ended - created).total_seconds())' "$work/answer")

say "The steps of the run, and its release"
call 200 "$holder" GET "/v1/jobs/$job/steps"
python3 -c '
import json, sys

for step in json.load(open(sys.argv[1]))["items"]:
    what = "topmost table" if step["attribute"] is None else "%s %s → %s" % (
        step["attribute"], step["value"], " ".join(step["children"]))
    print("  step %(step)d: %%s; %(groups)d groups, the smallest of %(smallest_group)d rows, DR %(dr).4f"
          % step % what)
' "$work/answer"
steps=$(field 'it["items"][-1]["step"]')
call 200 "$holder" GET "/v1/releases/$release"
sha256=$(field 'it["sha256"]')
rows=$(field 'it["rows"]')
smallest=$(field 'it["verification"]["smallest_group"]')
confidence=$(field '"%.1f" % (100 * it["verification"]["greatest_confidence"])')

say "The grant, to the BTS only: it waits for the approval of the privacy officer"
post 409 "$holder" "/v1/releases/$release/grants" \
    '{"recipient": "bts", "purpose": "Modelling the demand for blood"}'
post 201 "$officer" "/v1/releases/$release/approval" '{"decision": "approved", "reason": "The board has seen the report"}'
post 201 "$holder" "/v1/releases/$release/grants" \
    '{"recipient": "bts", "purpose": "Modelling the demand for blood"}'

say "As the BTS: list, report and table"
call 200 "$recipient" GET /v1/releases
call 200 "$recipient" GET "/v1/releases/$release/report"
dr=$(field '"%.4f" % it["utility"]["dr"]')
groups=$(field 'it["utility"]["groups"]')
printf '%sGET /v1/releases/%s/data%s\n' "$BOLD" "$release" "$PLAIN"
http --fail --header "Authorization: Bearer $recipient" --output "$work/data.csv" \
    "$address/v1/releases/$release/data"
head -n 4 "$work/data.csv" | sed 's/^/  /'
echo "  …"
[[ $(sha256sum <"$work/data.csv") == "$sha256  -" ]] || fail "the table does not have the SHA-256 of the release"
echo "  ${FAINT}its SHA-256 is that of the release: ${sha256:0:16}…${PLAIN}"

say "As another recipient: the release does not exist"
call 200 "$stranger" GET /v1/releases
call 404 "$stranger" GET "/v1/releases/$release"
call 404 "$stranger" GET "/v1/releases/$release/data"

say "A second release of the same persons, by another objective: private alone, and not together with the first one"
post 202 "$holder" /v1/jobs "${definition/classification/discernibility}"
job=$(field 'it["id"]')
http --no-buffer --max-time 600 --header "Authorization: Bearer $holder" \
    "$address/v1/jobs/$job/events" >"$work/events"
call 200 "$holder" GET "/v1/jobs/$job"
[[ $(field 'it["status"]') == succeeded ]] || fail "the second job did not succeed"
second=$(field 'it["release_id"]')
call 201 "$officer" POST "/v1/releases/$second/approval"
call 200 "$holder" GET "/v1/releases/$second/composition?recipient=bts"
together=$(field 'it["smallest_group"]')
post 409 "$holder" "/v1/releases/$second/grants" \
    '{"recipient": "bts", "purpose": "Comparing two cuts"}'

say "The hospital withdraws the first release; nobody can download it any more"
post 201 "$holder" "/v1/releases/$release/withdrawal" '{"reason": "Shown in a demonstration"}'
call 410 "$recipient" GET "/v1/releases/$release/data"

say "Summary"
cat <<END
  $rows records of the hospital were anonymized in $seconds s, in $steps steps, and released.
  Anyone who knows up to 4 values of a person finds at least $smallest matching records (the job
  required 20), and infers a divorce or separation with at most $confidence % confidence (20 % was
  the limit). The table has $groups groups. Its discernibility ratio is $dr: 0 would be the
  original table, 1 a table without information. The BTS downloaded the table; for the other
  recipient the release does not exist. A second release was refused: with both, somebody who can
  match their rows finds groups of $together.
END
