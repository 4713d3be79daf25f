#!/usr/bin/env bash
# Looks up the digests of the images that docker/compose.yaml and docker/Dockerfile name by tag, and
# writes them to docker/.env, which `docker compose` reads. Needs the images' registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The tags are those of the files, so that they are written in one place.
tag_of() {
    sed --quiet "s/.*{$1:-\([^}]*\)}.*/\1/p" compose.yaml | head --lines=1
}

for variable in RUST_IMAGE DEBIAN_IMAGE POSTGRES_IMAGE; do
    tag=$(tag_of "$variable")
    digest=$(docker buildx imagetools inspect "$tag" --format '{{.Manifest.Digest}}')
    [[ $digest == sha256:* ]] || {
        echo "pin-images: no digest of $tag" >&2
        exit 1
    }
    echo "$variable=$tag@$digest"
done >.env.new
mv .env.new .env
cat .env
