#!/usr/bin/env bash
# Runs the service in the foreground, with its data in ./data and a token of each role. Ctrl-C stops
# it; the data are kept. The tokens are new each time, the organizations are not.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

listen=${PAIS__SERVER__LISTEN:-127.0.0.1:8080}
data=${PAIS__SERVER__DATA_DIR:-data}
service=''

clean_up() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    if [[ -n $service ]]; then
        say "Stopping"
        stop_service "$service" "$data"
    fi
    exit "$status"
}
trap clean_up EXIT
# Being stopped is the normal end.
trap 'exit 0' INT TERM HUP

build_pais release

say "Starting the service; its log follows"
"$PAIS" serve --listen "$listen" --data-dir "$data" &
service=$!
wait_ready "http://$listen" "$service" || fail "the service did not start on $listen"

token() {
    "$PAIS" token create --organization "$1" --role "$2" --label "make run" --data-dir "$data"
}
admin=$(token operators admin)
holder=$(token hospital holder)
recipient=$(token bts recipient)
auditor=$(token hospital auditor)

say "Ready"
cat <<END
  address    http://$listen         (console: http://$listen/console/, API browser: http://$listen/docs)
  admin      $admin     organizations and tokens
  holder     $holder     hospital: datasets, jobs, releases, grants
  recipient  $recipient     bts: the releases granted to it
  auditor    $auditor     hospital: its audit log

  curl -H "Authorization: Bearer $holder" http://$listen/v1/datasets

  Ctrl-C stops it; the data are kept in $data.
END

status=0
wait "$service" || status=$?
service=''
exit "$status"
