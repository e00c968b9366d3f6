# Copies $2 blocks into the file $1, and waits $3 seconds after each.
set -e
: > "$1"
block=0
while [ "$block" -lt "$2" ]; do
  dd if=/dev/zero bs=65536 count=1 2>/dev/null >> "$1"
  block=$((block + 1))
  echo "copied $block"
  sleep "$3"
done
