#!/bin/sh
# Makes the virtual environment named by $1 with the first Python 3.11+ that can make one.
set -eu
target=$1

modern() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

found=
for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    modern "$python" || continue
    found=$python
    if "$python" -m venv --clear "$target" >/dev/null 2>&1; then exit 0; fi
    if "$python" -m virtualenv --quiet --clear "$target" >/dev/null 2>&1; then exit 0; fi
done

if [ -n "$found" ] && command -v uv >/dev/null 2>&1 && uv venv --quiet --clear --seed --python "$found" "$target"; then
    exit 0
fi

rm -rf "$target"
if [ -z "$found" ]; then
    echo "RLM-MEM needs Python 3.11 or newer, and none was found. Install one, or name it: make PYTHON=/path/to/python3" >&2
else
    echo "$found cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2
fi
exit 1
