#!/bin/bash
# A fresh Debian's apt-get, wget and tee, for a folder MACHINE in place of its root: a program is there once its package was
# installed, and a package once its source and the source's key are there.
set -euo pipefail
PATH=/usr/bin:/bin
machine='@MACHINE@'
here() { mkdir -p "$(dirname "$machine$1")"; printf '%s' "$machine$1"; }

install() {
    case "$1" in
        age | jq) ln -sf "/usr/bin/$1" "$machine/bin/$1" ;;
        wget) ln -sf apt-get "$machine/bin/wget" ;;
        ca-certificates) ;;
        proxmox-backup-client)
            local line keyring
            line=$(cat "$machine/etc/apt/sources.list.d/pbs-client.list") || exit 100
            keyring=$(sed -n 's/^deb \[signed-by=\([^]]*\)\] http:..download.proxmox.com.debian.pbs-client trixie main$/\1/p' <<< "$line")
            [[ -n "$keyring" ]] || { echo "E: Malformed entry: $line" >&2; exit 100; }
            grep -qx 'https://enterprise.proxmox.com/debian/proxmox-archive-keyring-trixie.gpg' "$machine$keyring" || exit 100
            cp "$machine/packages/proxmox-backup-client" "$machine/bin/"
            ;;
        *) echo "E: Unable to locate package $1" >&2; exit 100 ;;
    esac
}

case "$(basename "$0") $*" in
    "apt-get update") ;;
    "apt-get install -y "*) shift 2; for package; do install "$package"; done ;;
    "wget -O /"*) echo "$3" > "$(here "$2")" ;;
    "tee /"*) tee "$(here "$1")" ;;
    *) echo "$(basename "$0"): not as on a fresh Debian: $*" >&2; exit 2 ;;
esac
