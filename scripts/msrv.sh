#!/usr/bin/env bash
# Builds all targets with the minimum supported Rust version, `rust-version` in Cargo.toml.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

minimum=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
if [[ -z $minimum ]]; then
    echo "msrv: Cargo.toml states no rust-version" >&2
    exit 1
fi
[[ $minimum == *.*.* ]] || minimum+=.0

# A version such as 1.95.0, or the word nightly-… of a pre-release.
used=$(rustc --version | cut -d' ' -f2)
if [[ $used == "$minimum" ]]; then
    echo "msrv: Rust $minimum is the toolchain of all builds; clippy, doc and test have checked it"
    exit 0
fi
exec cargo "+$minimum" check --workspace --all-targets --locked
