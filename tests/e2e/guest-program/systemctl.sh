#!/bin/sh
# A stand-in for systemd in a guest that is only a folder: it really starts and stops the one program there, `orders`.
# Installed as `systemctl` and as `systemd-run`. A timer is a file, and never fires.
root=$(cd "$(dirname "$0")/../.." && pwd)
pid_file=$root/run/orders.pid

runs() {
    # The pid is of this boot and of this guest: its folder stands in the command line.
    [ -e "$pid_file" ] && tr '\0' ' ' < "/proc/$(cat "$pid_file")/cmdline" 2>/dev/null | grep -q -F "orders $root "
}

start() {
    runs && return
    setsid sh "$root/usr/bin/orders" "$root" < /dev/null > /dev/null 2>&1 &
    echo $! > "$pid_file"
}

stop() {
    runs && kill "$(cat "$pid_file")"
    rm -f "$pid_file"
}

state() {
    if [ "$1" != orders.service ]; then
        printf 'LoadState=not-found\nActiveState=inactive\n\n'
    elif runs; then
        printf 'LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nExecMainStatus=0\n\n'
    else
        printf 'LoadState=loaded\nActiveState=inactive\nSubState=dead\nResult=success\nExecMainStatus=0\n\n'
    fi
}

if [ "$(basename "$0")" = systemd-run ]; then
    for word in "$@"; do
        case $word in --unit=*) touch "$root/run/${word#--unit=}.timer" ;; esac
    done
    exit 0
fi

verb=$1
while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
shift
for unit in "$@"; do
    case $verb-$unit in
        is-active-*.timer) [ -e "$root/run/$unit" ] || exit 3 ;;
        stop-*.timer) rm -f "$root/run/$unit" ;;
        show-*) state "$unit" ;;
        start-orders.service) start ;;
        stop-orders.service) stop ;;
    esac
done
