#!/bin/sh
# BeforeTool, read-only mode: blocks every call. The matcher in the settings excludes the tools that read.
# It is needed because the tools that several hooks allow are combined, so another hook could allow more.
echo "Read-only mode: look, explain and propose, but change nothing. The user ends it with" \
    "\`llxprt-hooks disable read-only\`." >&2
exit 2
