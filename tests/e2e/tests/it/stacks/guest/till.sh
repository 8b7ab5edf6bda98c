# One number a line, each synced to the disk. Who is told to stop writes a last line: only an orderly end has one.
journal=/data/journal
n=$(/bin/busybox grep -v '[^0-9]' $journal 2>/dev/null | /bin/busybox tail -n 1)
trap 'echo "closed after $n" >> $journal; exit 0' TERM
while :; do
    n=$((n + 1))
    echo "$n" >> $journal
    /bin/busybox sync -d $journal
    /bin/busybox sleep 0.05
done
