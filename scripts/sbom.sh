#!/usr/bin/env bash
# Writes the bill of materials of the program `pais`, all of its dependencies included, as CycloneDX
# JSON. The tool writes beside each Cargo.toml, so it works on a copy of the manifests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

out=$(target_dir)/pais.cdx.json
copy=$(mktemp --directory)
trap 'rm --recursive --force "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs --null cp --parents --target-directory="$copy"
(
    cd "$copy"
    cargo cyclonedx --quiet --format json --describe binaries --target-in-filename \
        --manifest-path Cargo.toml
)
mkdir --parents "$(dirname "$out")"
found=$(find "$copy" -maxdepth 1 -name 'pais*.cdx.json')
[[ -f $found ]] || fail "expected one bill of materials of pais, found: ${found:-none}"
cp "$found" "$out"
say "Wrote $out: $(grep --count '"purl"' "$out") components"
