#!/bin/sh
# BeforeTool: saves a snapshot of the working tree before a tool changes something.
#
# The snapshots are commits at refs/llxprt/checkpoints, each with the one before it as its parent. HEAD, the branches,
# the index and the stash are not touched, and `git push` does not send them. What .gitignore names is not in them.

ref=refs/llxprt/checkpoints

tool=$(sed -n 's/.*"tool_name":[[:space:]]*"\([A-Za-z0-9_.-]*\)".*/\1/p' | head -n 1)
top=$(git rev-parse --show-toplevel 2>/dev/null) || exit 0

# `git add` runs filters that the repository names, so only in an approved project; where the engine does not say
# whether it is, this script has to be a part of it.
here=$(cd "$(dirname "$0")" && pwd -P) || exit 1
if [ -z "${LLXPRT_PROJECT_TRUSTED-}" ]; then
    case $here/ in
        "$(cd "$top" && pwd -P)"/*) LLXPRT_PROJECT_TRUSTED=1 ;;
    esac
fi
[ "${LLXPRT_PROJECT_TRUSTED-}" = 1 ] || exit 0
cd "$top" || exit 1

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# A copy of the index, so that git need not read every file again.
index=$(git rev-parse --git-path index)
if [ -f "$index" ]; then
    cp "$index" "$scratch/index" || exit 1
fi
GIT_INDEX_FILE=$scratch/index
GIT_AUTHOR_NAME=llxprt-hooks GIT_AUTHOR_EMAIL=checkpoint@localhost
GIT_COMMITTER_NAME=$GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL=$GIT_AUTHOR_EMAIL
export GIT_INDEX_FILE GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL

git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c advice.addEmbeddedRepo=false add --all . || exit 1
tree=$(git write-tree) || exit 1

# Tools may run in parallel: a run that finds that the reference has moved tries again on top of it.
for attempt in 1 2 3 4 5; do
    last=$(git rev-parse --verify --quiet "$ref")
    if [ -n "$last" ] && [ "$(git rev-parse "$last^{tree}")" = "$tree" ]; then
        exit 0
    fi
    commit=$(git commit-tree "$tree" ${last:+-p "$last"} -m "before ${tool:-a tool}") || exit 1
    if git update-ref -m "before ${tool:-a tool}" "$ref" "$commit" "$last" 2>/dev/null; then
        exit 0
    fi
done
echo "no checkpoint: the reference moved $attempt times" >&2
exit 75 # a failure (EX_TEMPFAIL): the call goes ahead
