#!/bin/sh
# Docker, systemctl and systemd-run of a guest that is a folder. What runs stands in files beneath `world`; a file in
# `world/fail` makes one act fail, a file in `world/hold` makes it wait. Every call is a line in `world/log`.
name=$(basename "$0")
root=$(dirname "$0")/..
world=$root/world
marker=$root/var/lib/holdfast/quiesce.json
echo "$name $*" >> "$world/log"

# gate ACT THING
gate() {
    turns=0
    while [ -e "$world/hold/$1-$2" ] && [ $turns -lt 600 ]; do
        turns=$((turns + 1))
        sleep 0.1
    done
    if [ -e "$world/fail/$1-$2" ]; then
        echo "$1 $2: says the test" >&2
        exit 1
    fi
}

# Nothing is stopped without a marker and a timer.
guarded() {
    if [ ! -e "$marker" ] || [ -z "$(ls "$world/timers")" ]; then
        echo "BARE $1" >> "$world/log"
    fi
}

containers() {
    verb=$1
    shift
    [ "$1" = -t ] && shift 2
    for id in "$@"; do
        gate "$verb" "$id"
        read -r project service state < "$world/c/$id"
        case $verb in
            stop)
                guarded "$id"
                # Done is what ended well. What does not end is killed, as soon as nobody waits any longer.
                case $state in
                    running | restarting) [ -e "$world/deaf/$id" ] && state=killed || state=exited ;;
                esac
                ;;
            start) state=running ;;
        esac
        echo "$project $service $state" > "$world/c/$id.new"
        mv "$world/c/$id.new" "$world/c/$id"
    done
}

# What ended by itself in a way that nobody would call well, and what was killed.
code() {
    case $1 in
        exited) echo 143 ;;
        killed) echo 137 ;;
        crashed) echo 1 ;;
        *) echo 0 ;;
    esac
}

status() {
    case $1 in
        killed | crashed) echo exited ;;
        *) echo "$1" ;;
    esac
}

# One that falls over is up again at each look, and in another run.
run() {
    if [ -e "$world/falls/$1" ]; then
        echo again >> "$world/falls/$1"
        wc -l < "$world/falls/$1"
    else
        echo 0
    fi
}

grace() {
    cat "$world/grace/$1" 2>/dev/null || echo 1
}

docker_program() {
    case $1 in
        stop|start) containers "$@" ;;
        events)
            # What somebody stopped, whatever it ended with.
            for word in "$@"; do
                case $word in container=*) [ -e "$world/stopped/${word#container=}" ] && echo stop ;; esac
            done
            exit 0
            ;;
        ps)
            # Of one project, what runs, by service.
            for file in "$world"/c/*; do
                [ -e "$file" ] || continue
                read -r of service state < "$file"
                case "$state $*" in
                    "running "*"project=$of --"*) echo "$service" ;;
                esac
            done
            ;;
        inspect)
            shift 5
            failed=0
            for id in "$@"; do
                gate inspect "$id"
                if [ -e "$world/c/$id" ]; then
                    read -r project service state < "$world/c/$id"
                    echo "$id $(status "$state") $(code "$state") none $(run "$id") $(grace "$id") false $(cat "$world/policy/$id" 2>/dev/null)"
                else
                    echo "Error: No such container: $id" >&2
                    failed=1
                fi
            done
            exit $failed
            ;;
        compose)
            project=$(basename "$3")
            case " $* " in
                *" config "*) cat "$world/config-$project.json" ;;
                *" ps "*)
                    gate ps "$project"
                    for file in "$world"/c/*; do
                        [ -e "$file" ] || continue
                        read -r of service state < "$file"
                        [ "$of" = "$project" ] || continue
                        echo "{\"ID\":\"$(basename "$file")\",\"Service\":\"$service\",\"State\":\"$(status "$state")\",\"Health\":\"\",\"ExitCode\":$(code "$state")}"
                    done
                    ;;
            esac
            ;;
    esac
}

# As systemd does it: what needs a unit stops with it, whoever needs that in turn, too, and nobody starts it again.
unneeded() {
    for needs in $(cat "$world/needed/$1" 2>/dev/null); do
        echo inactive > "$world/u/$needs"
        unneeded "$needs"
    done
}

# As systemd does it: what a target wants starts with it, unless it is told otherwise.
wanted() {
    [ "$2" = --job-mode=ignore-dependencies ] && return
    for wants in $(cat "$world/wants/$1" 2>/dev/null); do echo active > "$world/u/$wants"; done
}

systemctl_program() {
    verb=$1
    shift
    if [ "$verb" = reboot ]; then
        gate reboot guest
        return
    fi
    mode=$1
    while [ "$1" != -- ]; do shift; done
    shift
    for unit in "$@"; do
        case $verb-$unit in
            is-active-*.timer) [ -e "$world/timers/$unit" ] || exit 3 ;;
            stop-*.timer) gate stop timer; rm -f "$world/timers/$unit" ;;
            show-*)
                if [ -e "$world/u/$unit" ]; then
                    printf 'LoadState=loaded\nActiveState=%s\n' "$(cat "$world/u/$unit")"
                    printf 'ExecMainStatus=%s\n' "$(cat "$world/status/$unit" 2>/dev/null)"
                    printf 'Result=%s\n' "$(cat "$world/result/$unit" 2>/dev/null)"
                    printf 'ConsistsOf=%s\n' "$(cat "$world/parts/$unit" 2>/dev/null)"
                    printf 'RequiredBy=%s\n\n' "$(cat "$world/needed/$unit" 2>/dev/null)"
                else
                    printf 'LoadState=not-found\nActiveState=inactive\n\n'
                fi
                ;;
            stop-*)
                gate stop "$unit"
                guarded "$unit"
                echo inactive > "$world/u/$unit"
                [ -e "$world/result/$unit" ] && echo failed > "$world/u/$unit"
                # As systemd does it: what is part of it is told to stop, and nobody waits for that.
                for part in $(cat "$world/parts/$unit" 2>/dev/null); do echo deactivating > "$world/u/$part"; done
                unneeded "$unit"
                ;;
            start-*) gate start "$unit"; echo active > "$world/u/$unit"; wanted "$unit" "$mode" ;;
        esac
    done
}

systemd_run_program() {
    for word in "$@"; do
        shift
        case $word in
            --unit=holdfast-apt-judge-*) unit=${word#--unit=} kind=judge ;;
            --unit=*) unit=${word#--unit=} kind=timer ;;
            --) break ;;
        esac
    done
    gate arm $kind
    # As systemd does it.
    if [ ! -x "$1" ]; then
        echo "Failed to find executable $1: No such file or directory" >&2
        exit 1
    fi
    printf '%s\n' "$@" > "$world/${kind}s/$unit.$kind"
}

# What apt would upgrade stands in a file. It calls our hook as apt does, in its own environment and with its lock, and then does
# what a test wants packages to do.
apt_get_program() {
    echo "apt-get env ${HOLDFAST_UPGRADE:-none} ${DEBIAN_FRONTEND:-none}" >> "$world/log"
    case " $* " in
        *" update "*) gate apt update ;;
        *" clean "*) ;;
        *" -s "*) cat "$world/upgrades" 2>/dev/null ;;
        *" upgrade "*)
            cat "$root/run/holdfast/upgrade.pref" > "$world/priorities"
            sh "$world/apt-hook" || exit 100
            sh "$world/apt-acts"
            : > "$world/upgrades"
            gate apt upgrade
            ;;
    esac
}

case $name in
    apt-get) apt_get_program "$@" ;;
    docker) docker_program "$@" ;;
    systemctl) systemctl_program "$@" ;;
    systemd-run) systemd_run_program "$@" ;;
    dpkg-query) cat "$world/packages" ;;
    hook) gate hook "$1" ;;
esac
