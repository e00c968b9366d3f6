# MCP with curl, for the pages of this repository (bash or zsh): `. examples/mcp.sh`
#
#   ready                              waits for the server
#   call TOOL ARGUMENTS [OPTION…]      calls a tool as a task and keeps the task's ID in $TASK
#   get [OPTION…]                      shows that task
#   ask TOOL ARGUMENTS [OPTION…]       calls a tool like a client that knows no tasks
#   mcp METHOD NAME MEMBERS [OPTION…]  any request; NAME is the tool or the task, MEMBERS are those of `params`
#
# The options are curl's.

ready() {
  until curl -s http://127.0.0.1:8377/healthz; do sleep 1; done; echo
}

mcp() {
  curl -sS http://127.0.0.1:8377/mcp -H "Content-Type: application/json" \
    -H "Accept: application/json, text/event-stream" -H "MCP-Protocol-Version: 2026-07-28" -H "Mcp-Method: $1" \
    -H "Mcp-Name: $2" -d '{"jsonrpc":"2.0","id":1,"method":"'$1'","params":{"_meta":{
      "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":
      '"${CAPABILITIES-$TASKS}"'}'"${3:+,$3}"'}}' "${@:4}"; echo
}

TASKS='{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}'

call() {
  ANSWER=$(mcp tools/call $1 '"name":"'$1'","arguments":'"$2" "${@:3}"); echo "$ANSWER"
  TASK=$(echo "$ANSWER" | grep -o '"taskId":"[^"]*' | cut -d'"' -f4)
}

get() {
  mcp tasks/get $TASK '"taskId":"'$TASK'"' "$@"
}

ask() {
  CAPABILITIES='{}' mcp tools/call $1 '"name":"'$1'","arguments":'"$2" "${@:3}"
}
