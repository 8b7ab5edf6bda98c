#!/bin/bash
# A stand-in for proxmox-backup-client. It takes what the genuine client (4.2.0, November 2026) was recorded to take for
# listing and restoring, answers in its words, and refuses everything else. Backups lie below SERVER, encrypted with the key.
set -euo pipefail
PATH=/usr/bin:/bin
server='@SERVER@'

fail() { echo "Error: $*" >&2; exit 255; }
read_of() { cat "$server/$1"; }

connect() {
    local whom='^([^@]+@[^@!]+![^@!]+)@([^:@]+):([0-9]+):([^:]+)$'
    [[ "${PBS_REPOSITORY-}" =~ $whom ]] || fail "value does not match the regex pattern"
    account=${BASH_REMATCH[1]} datastore=${BASH_REMATCH[4]}
    [[ "${BASH_REMATCH[2]}:${BASH_REMATCH[3]}" == "$(read_of address)" ]] || fail "client error (Connect)"
    if [[ "${PBS_FINGERPRINT-}" != "$(read_of fingerprint)" ]]; then
        echo "certificate validation failed - Certificate fingerprint was not confirmed." >&2
        fail "client error (Connect)"
    fi
    [[ -n "${PBS_PASSWORD-}" ]] || fail "API token secret must be provided!"
    [[ "$account $PBS_PASSWORD" == "$(read_of account) $(read_of secret)" ]] || fail "authentication failed"
    [[ -d "$server/$datastore" ]] || fail "permission check failed"
    folder="$server/$datastore/${ns-}"
    [[ -d "$folder" ]] || fail "namespace not found"
}

# The key's fingerprint is computed from the key itself, as the genuine client does when it uses one.
open_key() {
    [[ "$(jq -r '.kdf' "$keyfile")" == null ]] || fail "no password input mechanism available"
    key=$(jq -er '.data' "$keyfile" | base64 -d | od -An -vtx1 | tr -d ' \n')
    [[ ${#key} == 64 ]] || exit 101
    local label id
    label=$(printf 'Proxmox Backup Encryption Key Fingerprint' | openssl dgst -sha256 -r | cut -d' ' -f1)
    id=$(openssl kdf -keylen 32 -kdfopt digest:SHA256 -kdfopt "hexpass:$key" -kdfopt salt:_id_key -kdfopt iter:10 PBKDF2 |
        tr -d ':\n' | tr A-F a-f)
    print=$(printf '%s%s' "$label" "$id" | xxd -r -p | openssl dgst -sha256 -r | cut -d' ' -f1 | sed 's/../&:/g; s/:$//')
    local said
    said=$(jq -r '.fingerprint // empty' "$keyfile")
    [[ -z "$said" || "$said" == "$print" ]] ||
        fail "KeyConfig contains wrong fingerprint ${said:0:23}… contained key has fingerprint ${print:0:23}…"
}

restore() {
    [[ ${#words[@]} == 4 ]] || fail "parameter verification failed"
    local snapshot=${words[1]} archive=${words[2]} target=${words[3]}
    connect
    if [[ "$snapshot" =~ ^(ct|vm|host)/[^/]+$ ]]; then
        local newest
        newest=$(ls "$folder/$snapshot" 2>/dev/null | sort | tail -n1)
        [[ -n "$newest" ]] || fail "backup group $snapshot does not contain any snapshots."
        snapshot="$snapshot/$newest"
    fi
    [[ -d "$folder/$snapshot" ]] || fail "snapshot $snapshot does not exist."
    local made_with
    made_with=$(cat "$folder/$snapshot/fingerprint")
    [[ -n "$keyfile" ]] || fail "missing key - manifest was created with key ${made_with:0:23}"
    open_key
    [[ "$print" == "$made_with" ]] || fail "wrong key - unable to verify signature since manifest's key ${made_with:0:23} does" \
        "not match provided key ${print:0:23}"
    { echo "Using encryption key from '$keyfile'.."; echo "Fingerprint: ${print:0:23}"; } >&2
    local stored
    for stored in "$folder/$snapshot/$archive".{didx,blob}; do
        [[ -f "$stored" ]] || continue
        local plain=(openssl enc -d -aes-256-ctr -K "$key" -iv 00000000000000000000000000000000 -in "$stored")
        case "$stored $target" in
            *.blob\ -) "${plain[@]}" ;;
            *.didx\ -) fail "unable to pipe directory archive" ;;
            *.didx\ *) mkdir "$target" && "${plain[@]}" | tar -x -C "$target" ;;
            *) "${plain[@]}" > "$target" ;;
        esac
        exit 0
    done
    fail "archive not found in manifest"
}

words=() ns='' keyfile='' format=text
while (($#)); do
    case "$1" in
        --ns) ns=$2; shift 2 ;;
        --keyfile) keyfile=$2; shift 2 ;;
        --output-format) format=$2; shift 2 ;;
        --*) fail "unknown option $1" ;;
        *) words+=("$1"); shift ;;
    esac
done
case "${words[*]}" in
    "snapshot list")
        [[ "$format" == text && -z "$keyfile" ]] || fail "parameter verification failed"
        connect
        (cd "$folder" && printf '│ %s │\n' */*/*)
        ;;
    restore\ *) restore ;;
    *) fail "no such command '${words[*]}'" ;;
esac
