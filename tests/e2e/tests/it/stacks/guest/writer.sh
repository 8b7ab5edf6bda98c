#!/bin/bash
# Commits one row after the other, and writes down what was acknowledged. A row that was not is tried again.
set -u
acknowledged=/var/lib/postgresql/acknowledged
# Debian's `psql` is a script that looks for this program each time it is called.
psql=(/usr/lib/postgresql/*/bin/psql)
n=$(cat $acknowledged)
while :; do
    next=$((n + 1))
    if "${psql[0]}" -XqAt -d ledger -c "insert into ledger (n) values ($next) on conflict do nothing" 2>/dev/null; then
        echo $next > $acknowledged.new
        mv $acknowledged.new $acknowledged
        n=$next
        sleep "$1"
    else
        sleep 0.05
    fi
done
