#!/bin/bash
# From a golden in which nothing was ever started to a database that is written to, with a pause of so many seconds.
set -eu
export DEBIAN_FRONTEND=noninteractive
# The golden carries no key; a guest makes its own.
make-ssl-cert generate-default-snakeoil 2>/dev/null
systemctl restart postgresql@17-main.service
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }
cd /
as_postgres createdb ledger
as_postgres psql -XqAt -v ON_ERROR_STOP=1 -d ledger -c \
    'create table ledger (n bigint primary key, at timestamptz not null default clock_timestamp())'
as_postgres sh -c 'echo 0 > /var/lib/postgresql/acknowledged'
systemd-run --quiet --unit=load-ledger --uid=postgres --gid=postgres /bin/bash /srv/writer.sh "$1"
