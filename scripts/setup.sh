#!/usr/bin/env bash
# Installs the system packages that building and testing pais needs, if they are missing, and the
# programs that it is called with. Installs on Debian and its derivatives only; on another system it
# says what to install.
set -euo pipefail

have() { command -v "$1" >/dev/null 2>&1; }

# The server's programs are not on PATH on Debian.
have_postgres() {
    local dir
    if have pg_config; then
        dir=$(pg_config --bindir 2>/dev/null || true)
        [[ -x "$dir/postgres" && -x "$dir/initdb" ]] && return 0
    fi
    for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin; do
        [[ -x "$dir/postgres" && -x "$dir/initdb" ]] && return 0
    done
    have postgres && have initdb
}

# The tests of the Python client make a virtual environment; on Debian its module is a package.
have_venv() { python3 -c 'import ensurepip, venv' >/dev/null 2>&1; }

if ! have cargo; then
    echo "setup: cargo is missing; install Rust (https://rustup.rs) and run this again" >&2
    exit 1
fi

packages=()
have_postgres || packages+=(postgresql)
have cc || packages+=(build-essential)
have curl || packages+=(curl)
have python3 || packages+=(python3)
have_venv || packages+=(python3-venv)
for program in "$@"; do
    have "$program" || packages+=("$program")
done
[[ ${#packages[@]} -eq 0 ]] && exit 0

if ! have apt-get; then
    echo "setup: install ${packages[*]} with this system's package manager" \
        "(Fedora names the first one postgresql-server) and run this again" >&2
    exit 1
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
    if ! have sudo; then
        echo "setup: run as root: apt-get install ${packages[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
    # Without a terminal, sudo cannot ask for a password.
    [[ -t 0 ]] || as_root+=(--non-interactive)
fi

echo "setup: installing ${packages[*]}" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${packages[@]}" </dev/null

if ! have_postgres; then
    echo "setup: the programs of the PostgreSQL server are still missing; set" \
        "PAIS__POSTGRES__BIN_DIR to the directory that holds postgres and initdb" >&2
    exit 1
fi
if ! have_venv; then
    echo "setup: $(command -v python3) has no venv module; put an interpreter that has it first on" \
        "PATH" >&2
    exit 1
fi
