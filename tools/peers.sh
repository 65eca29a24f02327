#!/bin/sh
# Other memories for benchmarks/peers.py, each in an environment of its own below build/peers, versions pinned.
# What cannot be installed here is said and left out: the benchmark then says so, too.
set -u
place=build/peers
mkdir -p "$place"

fresh() { # fresh NAME PYTHON PACKAGE...: an environment with these packages
    name=$1 python=$2
    shift 2
    [ -x "$place/$name/bin/python" ] || "$python" -m venv "$place/$name" || return 1
    "$place/$name/bin/python" -m pip install --disable-pip-version-check --no-input -q "$@"
}

fresh python "${PYTHON:-python3}" "langgraph-checkpoint-sqlite==3.1.2" "mem0ai==2.2.1" ||
    echo "LangGraph's store and mem0 cannot be installed here."

# basic-memory wants Python 3.12 or later.
newer=
for python in python3.13 python3.12 "${PYTHON:-python3}"; do
    if command -v "$python" >/dev/null 2>&1 &&
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
        newer=$python
        break
    fi
done
if [ -z "$newer" ] || ! fresh basic-memory "$newer" "basic-memory==0.20.3"; then
    echo "basic-memory cannot be installed here: it wants Python 3.12 or later (PYTHON=… names one)."
fi

if command -v npm >/dev/null 2>&1; then
    mkdir -p "$place/node" &&
        npm install --prefix "$place/node" --no-audit --no-fund --silent "@modelcontextprotocol/server-memory@2026.8.31" ||
        echo "The MCP memory server cannot be installed here."
else
    echo "The MCP memory server cannot be installed here: there is no npm."
fi
exit 0
