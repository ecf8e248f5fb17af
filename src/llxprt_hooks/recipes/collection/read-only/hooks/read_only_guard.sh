#!/bin/sh
# BeforeTool, read-only mode: blocks whatever it is asked about. The matcher in the settings names the tools that it is
# not for. It is there because another hook may allow the model more tools: what hooks allow is put together.
echo "Read-only mode: look, explain and propose, but change nothing. The user ends it with" \
    "\`llxprt-hooks disable read-only\`." >&2
exit 2
