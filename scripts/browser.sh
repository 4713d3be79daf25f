#!/usr/bin/env bash
# Installs the browser in which the tests open the report's pages, if none is there. On Debian and
# its derivatives only; on another system it says what to install.
set -euo pipefail

for name in chromium chromium-browser google-chrome chrome; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
if ! command -v apt-get >/dev/null 2>&1; then
    echo "browser: install chromium with this system's package manager and run this again" >&2
    exit 1
fi
as_root=()
if [[ $(id -u) -ne 0 ]]; then
    as_root=(sudo)
    [[ -t 0 ]] || as_root+=(--non-interactive)
fi
echo "browser: installing chromium" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends chromium </dev/null
