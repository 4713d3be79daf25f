#!/usr/bin/env bash
# Makes a Debian package, and an archive with the same files, in target/package: the program, its manual pages,
# completions, units of systemd, documentation. PAIS_BIN is a program that is built already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh

PAIS=${PAIS_BIN:-}
[[ -n $PAIS ]] || build_pais release
# Cargo.toml names the files in it.
out=target/package
rm --recursive --force "$out"
mkdir --parents "$out"/{completions,man,systemd}
strip --strip-debug -o "$out/pais" "$PAIS"
"$PAIS" man "$out/man"
gzip --best --no-name "$out"/man/*.1
"$PAIS" completions bash >"$out/completions/pais"
"$PAIS" completions zsh >"$out/completions/_pais"
"$PAIS" completions fish >"$out/completions/pais.fish"
for unit in docker/systemd/*.service; do
    sed 's|/usr/local/bin/|/usr/bin/|' "$unit" >"$out/systemd/$(basename "$unit")"
done

say "Packing"
cargo deb --locked --no-build --no-strip --output "$out"
deb=$(echo "$out"/*.deb)

# The archive has the files of the package, to be unpacked anywhere.
name=$(basename "$deb" .deb)
dpkg-deb --extract "$deb" "$out/$name"
tar --create --gzip --file "$out/$name.tar.gz" --directory "$out" --sort=name --mtime=@0 \
    --owner=0 --group=0 --numeric-owner "$name"
rm --recursive --force "${out:?}/$name"
(cd "$out" && sha256sum -- *.deb *.tar.gz >SHA256SUMS)
say "Made"
ls -l "$out"/*.deb "$out"/*.tar.gz
