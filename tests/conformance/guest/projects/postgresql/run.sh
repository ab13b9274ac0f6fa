#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# PostgreSQL as the sandbox's user: initdb, a server, queries over its socket and over TCP, a crash and its recovery.
set -eu
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
export PATH PGDATA="$HOME/data" PGHOST=/tmp PGDATABASE=postgres LC_ALL=C.UTF-8
initdb -A trust --no-sync --no-instructions
cat >>"$PGDATA/postgresql.conf" <<-END
	unix_socket_directories = '/tmp'
	listen_addresses = '127.0.0.1'
END
pg_ctl -w -t 300 -l log start
psql -qc 'create table t as select n, md5(n::text) as s from generate_series(1, 2000) n'
psql -qc 'create index on t (s); analyze t'
question="select count(*), sum(n) from t where s > '7'"
test "$(psql -Atc "$question")" = "$(psql -h 127.0.0.1 -Atc "$question")"
pg_ctl -w -t 300 -m immediate stop
pg_ctl -w -t 300 -l log start
test "$(psql -Atc 'select sum(n) from t')" = 2001000
grep -q 'automatic recovery' log
pg_ctl -w -t 300 -m fast stop
echo recovered
