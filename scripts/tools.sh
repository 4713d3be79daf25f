#!/usr/bin/env bash
# Installs the named Cargo tools if they are missing:
# tools.sh [cargo-cyclonedx] [cargo-deb] [cargo-deny] [cargo-machete].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Fixed versions, so that a check gives the same answer on every machine. An installed tool of
# another version is used as it is.
declare -A versions=(
    [cargo-cyclonedx]=0.5.9
    [cargo-deb]=3.8.0
    [cargo-deny]=0.20.2
    [cargo-machete]=0.9.2
)

for tool in "$@"; do
    version=${versions[$tool]:-}
    if [[ -z $version ]]; then
        echo "tools: unknown tool $tool; known are ${!versions[*]}" >&2
        exit 2
    fi
    cargo "${tool#cargo-}" --version >/dev/null 2>&1 && continue
    echo "tools: installing $tool $version" >&2
    # A debug build takes half the time of a release build, and a check with it a few seconds. In one
    # directory, the tools share the dependencies that they have in common.
    CARGO_PROFILE_DEV_DEBUG=false cargo install "$tool" --version "$version" --locked --quiet \
        --debug --target-dir target/tools
done
