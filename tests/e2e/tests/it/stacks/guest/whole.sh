#!/bin/bash
# What the database of a restored guest holds, one name and value a line; and that its pages and indexes are sound.
set -eu
cd /
ask() { setpriv --reuid=postgres --regid=postgres --init-groups -- psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2"; }
echo "rows $(ask ledger 'select count(*) from ledger')"
echo "last $(ask ledger 'select coalesce(max(n), 0) from ledger')"
echo "books $(ask bench 'select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history)
    and (select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) from pgbench_branches)
    and (select sum(bbalance) from pgbench_branches) = (select coalesce(sum(delta), 0) from pgbench_history)')"
setpriv --reuid=postgres --regid=postgres --init-groups -- /usr/lib/postgresql/17/bin/pg_amcheck --all --install-missing --heapallindexed
echo "pages sound"
