# Asks before it publishes the version $1.
echo 'longhaul: {"ask": "approve", "message": "Publish this version?", "schema": {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]}}'
read -r answer
case $answer in
  *'"yes":true'*) echo "$1 is published" ;;
  *) echo "$1 is not published" ;;
esac
