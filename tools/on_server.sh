#!/usr/bin/env bash
# The behaviour tests of the database backend against a server that runs already: any PostgreSQL, or a Citus cluster.
#
#   tools/on_server.sh postgresql://postgres@127.0.0.1:5432/postgres [ARGUMENTS OF PYTEST]
#
# The DSN names a superuser: each worker of pytest makes databases of its own there, and removes them at the end. Of a
# Citus cluster it names the coordinator, and a database that has the extension and the workers. The role "tester" stays.
# Left out are tests that start servers of their own, and those that tell a single server from others.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -lt 1 ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
  exit 2
fi
export RLM_TEST_DSN=$1
shift
if [ $# = 0 ]; then set -- tests; fi
exec "${PYTHON:-.venv/bin/python}" -m pytest -q -p no:cacheprovider -k "(postgres or shards or copying or round_trips) and not pgbouncer and not failover" "$@"
