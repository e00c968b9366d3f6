# Compiles $1 files and links them. Progress is on standard error, the result, a JSON object, on standard output.
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
file=0
while [ "$file" -lt "$1" ]; do
  file=$((file + 1))
  echo "int f$file(int x) { return x + $file; }" > "$folder/$file.c"
  cc -fPIC -c -o "$folder/$file.o" "$folder/$file.c"
  echo "[$file/$1] compiled" >&2
  sleep "$2"
done
cc -shared -o "$folder/library.so" "$folder"/*.o
echo "{\"objects\": $(ls "$folder"/*.o | wc -l)}"
