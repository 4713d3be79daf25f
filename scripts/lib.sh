# Functions that the other scripts share; to be sourced.
# shellcheck shell=bash

# The directory of build results.
target_dir() {
    realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}"
}

# Builds the program; its path is in PAIS afterwards. The profile is PAIS_PROFILE, or $1: `dev` builds
# faster and shares its results with the tests, `release` is what benchmarks measure.
build_pais() {
    local profile=${PAIS_PROFILE:-$1}
    case $profile in
        dev) PAIS=$(target_dir)/debug/pais ;;
        *) PAIS=$(target_dir)/$profile/pais ;;
    esac
    say "Building pais ($profile)"
    [[ -e $PAIS ]] || echo "The first build compiles some 380 crates: 5 to 8 minutes on two cores, longer for a release build."
    cargo build --locked --profile "$profile" --bin pais
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

# Requests to this machine must not go through a proxy of the environment.
http() {
    curl --silent --show-error --noproxy '*' "$@"
}

# Waits until the service at $1, process $2, can serve.
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

# Stops the service, process $1, whose data is in $2, and its database server.
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
