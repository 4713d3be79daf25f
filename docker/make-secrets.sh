#!/usr/bin/env bash
# Makes the secrets of docker/compose.yaml in docker/secrets: the password of the database, its URL,
# and the key that wraps the datasets' keys. Secrets that exist are kept. Copy the key to a safe
# place: without it no raw row can be read.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# The directory is closed to others; the containers get each file by itself, and read it as a user
# other than its owner.
install --directory --mode=0700 secrets
cd secrets

random() {
    head --bytes="$1" /dev/urandom
}

write() {
    local file=$1
    if [[ -s $file ]]; then
        echo "make-secrets: $file exists and is kept" >&2
        cat >/dev/null
        return
    fi
    cat >"$file.new"
    chmod 0644 "$file.new"
    mv "$file.new" "$file"
}

random 24 | od --address-radix=n --format=x1 | tr --delete ' \n' | write database_password
password=$(<database_password)
printf 'postgres://pais:%s@db/pais?sslmode=disable' "$password" | write database_url
random 32 | base64 --wrap=0 | write encryption_key
