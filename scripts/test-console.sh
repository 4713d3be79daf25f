#!/usr/bin/env bash
# Checks the console: its types, its units, that the committed files are what its sources build, and each
# person's way in a real browser on the real program. PAIS_BIN names the program; by default it is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

work=''
trap '[[ -z $work ]] || rm -rf "$work"' EXIT

version=$(node --version 2>/dev/null || true)
[[ $version =~ ^v(20|2[2-9]|[3-9][0-9])\. ]] || fail "install Node.js 20 or later; found '$version'"
scripts/browser.sh
PAIS=${PAIS_BIN:-}
[[ -n $PAIS ]] || build_pais dev

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
PAIS_BIN=$(realpath "$PAIS") npm run --silent e2e
