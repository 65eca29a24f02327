#!/usr/bin/env sh
# Build the wheel, and try it in a clean environment of each Python that is named or found (3.11 and later): it installs
# without a compiler, its requirements fit together, it remembers, answers and starts as a server.
# sh tools/wheels.sh [PYTHON…]
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A Python that is a shim for a version that is not chosen cannot run, and is passed over.
[ $# -gt 0 ] || set -- python3.11 python3.12 python3.13 python3.14
"${BUILDER:-python3}" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" .
wheel=$(ls "$work"/*.whl)
python3 - "$wheel" <<'PY'
import sys, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
licences = [name for name in names if "/licenses/" in name]
assert len(licences) == 2, licences
print(sys.argv[1].rpartition("/")[2], f"{len(names)} files, licences:", *(one.rpartition("/")[2] for one in licences))
PY
tried=0
for python in "$@"; do
    "$python" -c "" 2>/dev/null || { echo "$python: not here"; continue; }
    "$python" -m venv "$work/venv"
    "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "$wheel[server]"
    "$work/venv/bin/python" -m pip check --disable-pip-version-check
    (
        cd "$work"
        PATH="$work/venv/bin:$PATH" HOME="$work/home" && export PATH HOME
        mkdir -p home && rm -rf brain
        rlm-mem store init
        rlm-mem remember "We chose PostgreSQL because of its row-level security."
        rlm-mem recall "Why did we choose PostgreSQL?" | grep row-level
        rlm-mem doctor | grep -v '^ok'
    ) >"$work/said" 2>&1 || true
    grep -q "^because of its row-level security" "$work/said" || { cat "$work/said"; exit 1; }
    echo "$("$work/venv/bin/python" --version): installed, remembered and answered"
    tried=$((tried + 1))
    rm -rf "$work/venv"
done
[ "$tried" -gt 0 ]
