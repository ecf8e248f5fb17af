#!/usr/bin/env python3
"""BeforeTool: asks a person before something is deployed, published or pushed."""

from __future__ import annotations

import json
import re
import sys

from llxprt_hooks.recipes.collection.parts.call_commands import NoCommand, command_lines

OPTIONS = r"(?:\s+-{1,2}\S+(?:[= ][^\s-]\S*)?)*\s+"  # between a program and its action: git -C folder push
# Programs, and what they do that others see.
COMMANDS = {
    "git": "push",
    "gh": "release (?:create|upload|edit)|pr merge|workflow run|deployment",
    "glab": "release create|mr merge|ci run",
    "(?:terraform|tofu|terragrunt)": "apply|destroy|import|run-all apply",
    "pulumi": "up|destroy|refresh",
    "kubectl": "apply|create|replace|patch|delete|rollout|scale|set|drain|cordon",
    "helm": "install|upgrade|uninstall|delete|rollback",
    "(?:npm|pnpm|yarn|bun)": "publish|npm publish|unpublish|run deploy|deploy|run release|release",
    "(?:cargo|poetry|uv|hatch|flit|pdm)": "publish|yank",
    "twine": "upload",
    "gem": "push|yank",
    "(?:docker|podman|buildah|skopeo)": "push|image push|compose push|copy|stack deploy",
    "(?:cdk|sam|serverless|sls|copilot|eb)": "deploy|destroy|remove",
    "(?:flyctl|fly|vercel|netlify|railway|wrangler|firebase|now|render|surge)": "deploy|publish|up|--prod",
    "(?:gcloud)": r"(?:\S+ ){0,3}(?:deploy|update|delete)",
    "aws": r"\S+ (?:deploy|update-\S+|delete-\S+|put-\S+|create-\S+)|s3 (?:sync|cp|mv|rm)",
    "az": r"(?:\S+ ){1,3}(?:create|update|delete|deploy)",
    "heroku": "releases|container:release|ps:scale|config:set",
    "(?:ansible-playbook|cap|kamal|capistrano|argocd|flux)": r"\S+",
    "(?:make|just|task|rake|mage)": r"\S*(?:deploy|publish|release)\S*",
}
ACTS = [re.compile(rf"(?<![\w.-]){program}{OPTIONS}(?:{action})(?![\w-])") for program, action in COMMANDS.items()]
PLANS = re.compile(r"\s(?:--dry-run(?:=\w+)?|--help|-h|--plan)(?![\w-])")
DEPLOYING_TOOL = re.compile(
    r"(?:^|[_.-]|(?<=[a-z])(?=[A-Z]))(?:[Dd]eploy|[Pp]ublish|[Rr]elease|[Rr]ollout|[Rr]ollback|[Pp]romote|[Pp]ush)(?![a-z])"
)


def question(tool: str, given: dict[str, object]) -> str | None:
    """What to ask about a call, or None."""
    if DEPLOYING_TOOL.search(tool):
        return f"The tool `{tool}` deploys or publishes."
    try:
        lines = command_lines(tool, given)
    except NoCommand as error:
        return f"This command cannot be checked: {error}."
    for _, line, _ in lines:
        for part in re.split(r"&&|\|\||[;\n|]", line.replace("\\\n", " ")):
            plain = re.sub(r"['\"]", "", part)
            found = next(filter(None, (acts.search(plain) for acts in ACTS)), None)
            if found and not PLANS.search(plain):
                return f"`{' '.join(found.group().split())[:80]}` reaches other people or machines."
    return None


def main() -> None:
    call = json.loads(sys.stdin.buffer.read())
    reason = question(call["tool_name"], call["tool_input"])
    if reason:
        print(json.dumps({"decision": "ask", "reason": reason}))


if __name__ == "__main__":
    main()
