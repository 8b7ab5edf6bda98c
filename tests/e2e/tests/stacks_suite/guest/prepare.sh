#!/bin/bash
# From a golden in which nothing was ever started to a database and a shop under load.
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
as_postgres createdb bench
as_postgres pgbench --quiet --initialize --scale=8 bench 2>/dev/null
as_postgres sh -c 'echo 0 > /var/lib/postgresql/acknowledged'
systemd-run --quiet --unit=load-ledger --uid=postgres --gid=postgres /bin/bash /srv/writer.sh
# It ends when the database goes, and comes back with it.
systemd-run --quiet --unit=load-bench --uid=postgres --gid=postgres --property=Restart=always --property=RestartSec=1 \
    --property=StartLimitIntervalSec=0 pgbench --no-vacuum --client=2 --rate=100 --time=3600 bench
docker info >/dev/null 2>&1 || { journalctl --unit=docker.service --output=cat --no-pager --lines=20; exit 1; }
cp /usr/bin/busybox /srv/shop/image/busybox
docker compose --project-directory /srv/shop up --detach --build --quiet-pull --wait
docker compose --project-directory /srv/shop stop aside
