#!/usr/bin/env bash
# Makes a release: release.sh [--dry-run] VERSION, for example release.sh 1.2.3.
#
# Sets the version in Cargo.toml, Cargo.lock and, if it is the same there, in the Python client;
# dates the changelog's Unreleased section; writes openapi/openapi.json again; commits, and makes
# the annotated tag v1.2.3. Nothing is pushed. --dry-run checks and prints what would change.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh
exec </dev/null

dry_run=false
if [[ ${1:-} == --dry-run ]]; then
    dry_run=true
    shift
fi
[[ $# -eq 1 ]] || fail "give one version, such as 1.2.3 (make release VERSION=1.2.3)"
version=$1
tag=v$version
number='(0|[1-9][0-9]*)'
[[ $version =~ ^$number\.$number\.$number(-[0-9A-Za-z.-]+)?$ ]] ||
    fail "\"$version\" is not a semantic version such as 1.2.3 or 1.2.3-rc.1"

[[ -z $(git status --porcelain) ]] ||
    fail "the working tree has uncommitted changes; commit or remove them first"
! git rev-parse --quiet --verify "refs/tags/$tag" >/dev/null ||
    fail "the tag $tag exists already; choose another version"

# Writes the changed files and prints their names. With --dry-run it prints their differences.
change_files() {
    python3 - "$version" "$(date --utc +%F)" "$dry_run" <<'PYTHON'
import difflib, re, sys
from pathlib import Path

version, date, dry_run = sys.argv[1], sys.argv[2], sys.argv[3] == "true"


def refuse(message):
    sys.exit(f"release: {message}")


def order(text):
    """Sorts as versions do; a pre-release comes before its release."""
    numbers, _, pre = text.partition("-")
    parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in pre.split(".")]
    return tuple(map(int, numbers.split("."))), not pre, parts


def in_section(text, section, pattern, replacement):
    """Replaces the first match of a pattern in a section of a TOML file."""
    head = re.search(rf"^\[{re.escape(section)}\]$", text, re.M)
    if not head:
        return text, 0
    next_head = re.search(r"^\[", text[head.end():], re.M)
    end = head.end() + next_head.start() if next_head else len(text)
    body, count = re.subn(pattern, replacement, text[head.end():end], count=1, flags=re.M)
    return text[:head.end()] + body + text[end:], count


changed = {}

path = Path("CHANGELOG.md")
log = path.read_text()
unreleased = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", log, re.M | re.S)
if not unreleased:
    refuse("CHANGELOG.md has no section \"## [Unreleased]\"; add one with what has changed")
if not re.search(r"^[-*] ", unreleased[1], re.M):
    refuse("CHANGELOG.md has no entries under \"## [Unreleased]\"; list what has changed")
if f"## [{version}]" in log:
    refuse(f"CHANGELOG.md has a section for {version} already; choose another version")
heading = f"## [Unreleased]\n\n## [{version}] - {date}\n"
changed[path] = log[:unreleased.start()] + heading + log[unreleased.start(1):]

path = Path("Cargo.toml")
text = path.read_text()
section = "workspace.package" if "[workspace.package]" in text else "package"
found = re.search(rf'^\[{re.escape(section)}\]$.*?^version = "(.*?)"$', text, re.M | re.S)
if not found:
    refuse(f"Cargo.toml has no version in [{section}]")
old = found[1]
if order(version) < order(old):
    refuse(f"{version} is lower than the present version {old}")
text, _ = in_section(text, section, r'^version = ".*"$', f'version = "{version}"')
# Crates of the workspace that name each other by path and version.
own = rf'^(pais[a-z-]* = \{{.*path = ".*version = "=?){re.escape(old)}"'
swapped = rf'^(pais[a-z-]* = \{{.*version = "=?){re.escape(old)}"(?=.*path = ")'
for pattern in (own, swapped):
    text = re.sub(pattern, rf'\g<1>{version}"', text, flags=re.M)
changed[path] = text

path = Path("clients/python/pyproject.toml")
text = path.read_text()
pattern = rf'^version = "{re.escape(old)}"$'
changed[path], _ = in_section(text, "project", pattern, f'version = "{version}"')

for path, text in changed.items():
    before = path.read_text()
    if before == text:
        continue
    if dry_run:
        lines = before.splitlines(), text.splitlines()
        print(*difflib.unified_diff(*lines, str(path), str(path), lineterm="", n=1), sep="\n")
    else:
        path.write_text(text)
        print(f"changed {path}")
PYTHON
}

say "Version $version"
if $dry_run; then
    change_files
    echo "release: --dry-run: nothing was written; without it, Cargo.lock and" \
        "openapi/openapi.json are updated too, and the commit gets the tag $tag"
    exit 0
fi

# The tree was clean, so a failure can revert every change.
finished=false
revert() {
    $finished || {
        git checkout --quiet -- .
        rm -f openapi/openapi.json.new
        echo "release: failed; all changes were reverted" >&2
    }
}
trap revert EXIT
change_files
cargo update --workspace --offline --quiet
build_pais dev
"$PAIS" openapi >openapi/openapi.json.new
mv openapi/openapi.json.new openapi/openapi.json
git add --update
git commit --quiet --message "Release $version"
finished=true

git tag --annotate "$tag" --message "pais $version"
say "Committed and tagged $tag"
echo "Publish it with: git push --follow-tags"
