#!/bin/sh
# Writes an order every fifth of a second: its number, and the time since the machine booted. The demo's customer program.
# Its argument is the guest's root folder; empty in a guest that is booted.
root=${1:-}
journal=$root/srv/orders/journal
mkdir -p "$root/srv/orders"
touch "$journal"
number=$(wc -l < "$journal")
# A guest that is a folder has this file while it runs.
while [ -z "$root" ] || [ -e "$root/proc/1/environ" ]; do
    number=$((number + 1))
    read -r uptime _ < /proc/uptime
    echo "$number $uptime" >> "$journal"
    sleep 0.2
done
