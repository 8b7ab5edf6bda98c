#!/bin/bash
# Load on the database beside the ledger, and a shop under load.
set -eu
as_postgres() { setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"; }
cd /
as_postgres createdb bench
as_postgres pgbench --quiet --initialize --scale=8 bench 2>/dev/null
# It ends when the database goes, and comes back with it.
systemd-run --quiet --unit=load-bench --uid=postgres --gid=postgres --property=Restart=always --property=RestartSec=1 \
    --property=StartLimitIntervalSec=0 pgbench --no-vacuum --client=2 --rate=100 --time=3600 bench
docker info >/dev/null 2>&1 || { journalctl --unit=docker.service --output=cat --no-pager --lines=20; exit 1; }
cp /usr/bin/busybox /srv/shop/image/busybox
docker compose --project-directory /srv/shop up --detach --build --quiet-pull --wait
docker compose --project-directory /srv/shop stop aside
