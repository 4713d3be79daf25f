#!/usr/bin/env bash
# The tests of the Python client, against a service that they start.
#
# The virtual environment is kept in target/python, and made again when the client's
# pyproject.toml, the place of the checkout or the Python interpreter has changed. The client is
# installed in editable mode, so its sources are always the present ones. PAIS_BIN names a built
# program; without it, `pais` is built without optimization. Arguments are passed to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/lib.sh
exec </dev/null

# The caller's Python settings must not change the tests.
unset PYTHONHOME PYTHONPATH PYTEST_ADDOPTS PYTEST_PLUGINS
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1

client=$PWD/clients/python
environment=$(target_dir)/python
python=$environment/bin/python
stamp=$environment/made-for

interpreter=$(python3 -c 'import ensurepip, sys, venv; print(sys.version, sys.prefix)') ||
    fail "python3 with its venv module is missing; run scripts/setup.sh"
wanted=$(printf '%s\n' "$client" "$interpreter" | cat - "$client/pyproject.toml" | sha256sum)

if [[ ! -x $python || ! -f $stamp || $(<"$stamp") != "$wanted" ]]; then
    say "Making a virtual environment in $environment"
    python3 -m venv --clear "$environment"
    "$python" -m pip install --quiet --editable "${client}[test]"
    # Written last: an environment without it is incomplete and is made again.
    echo "$wanted" >"$stamp"
fi

if [[ -z ${PAIS_BIN:-} ]]; then
    build_pais dev
    PAIS_BIN=$PAIS
fi
PAIS_BIN=$(realpath "$PAIS_BIN")
export PAIS_BIN

say "Testing the Python client"
cd "$client"
exec "$python" -m pytest -q -p no:cacheprovider "$@"
