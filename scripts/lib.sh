# Functions shared by demo.sh and run.sh. Source this file.
# shellcheck shell=bash

# Builds the program and sets PAIS to its path. PAIS_PROFILE=dev builds without optimization:
# faster to build, slower to run.
build_pais() {
    local profile=${PAIS_PROFILE:-release} target
    say "Building pais ($profile)"
    cargo build --locked --quiet --profile "$profile" --bin pais
    target=${CARGO_TARGET_DIR:-target}
    case $profile in
        dev) PAIS=$target/debug/pais ;;
        *) PAIS=$target/$profile/pais ;;
    esac
}

if [[ -t 1 ]]; then
    BOLD=$'\e[1m' FAINT=$'\e[2m' PLAIN=$'\e[0m'
else
    BOLD='' FAINT='' PLAIN=''
fi

say() {
    printf '\n%s%s%s\n' "$BOLD" "$*" "$PLAIN"
}

fail() {
    printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2
    exit 1
}

# Requests go to this machine, so ignore any proxy that the environment sets.
http() {
    curl --silent --show-error --noproxy '*' "$@"
}

# Waits up to 120 s until the service at $1, process $2, is ready. Fails if it ends before.
wait_ready() {
    local tries
    for ((tries = 0; tries < 1200; tries++)); do
        kill -0 "$2" 2>/dev/null || return 1
        [[ $(http --output /dev/null --write-out '%{http_code}' "$1/readyz" 2>/dev/null) == 200 ]] &&
            return 0
        sleep 0.1
    done
    return 1
}

# Stops the service, process $1, whose data is in $2, and makes sure that its database server ends.
stop_service() {
    local pid=$1 data=$2 tries server
    kill -TERM "$pid" 2>/dev/null || true
    for ((tries = 0; tries < 900; tries++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    # Only a service that was killed leaves its database server running.
    if server=$(head -n 1 "$data/postgres/cluster/postmaster.pid" 2>/dev/null); then
        kill -INT "$server" 2>/dev/null || true
        for ((tries = 0; tries < 300; tries++)); do
            kill -0 "$server" 2>/dev/null || break
            sleep 0.1
        done
    fi
}
