"""Reads recipes from the collection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from llxprt_hooks._support.text import closest
from llxprt_hooks.recipes.bundle import bundled
from llxprt_hooks.settings.hook_fields import STANDARD

COLLECTION: Final = Path(__file__).parent / "collection"

FIRST_HOOK: Final = "first-hook"
"""The recipe that ``init`` installs by default; not listed among the others."""

NAMES: Final = (
    "secret-scanning",
    "dangerous-commands",
    "protected-files",
    "egress",
    "pii-redaction",
    "sequential-chain",
    "format-on-write",
    "test-after-edit",
    "test-first",
    "git-checkpoint",
    "text-only-caveat",
    "git-context",
    "read-only",
    "cost-cap",
    "response-cache",
    "audit-log",
    "chat-notification",
    "ci-safety-net",
    "policy-service",
    "provenance",
    "ask-before-deploy",
    "refuse-secret-prompts",
    "redact-results",
    "project-facts",
    "work-until-tests-pass",
)
"""In installation order, which is the order in which their hooks run: hooks that rewrite a file before those that test
it; hooks that check a request, then those that add to it, then the cache."""


class UnknownRecipeError(LookupError):
    """There is no recipe with that name. The message is for the user."""


class RecipeTrial(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to try the sample: shell commands, and the expected outcome."""

    expect: str
    """The outcome of firing the sample and where to see it; starts with the same words as the printed outcome."""
    before: str = ""
    """A command that creates the files the sample refers to."""
    variables: str = ""
    """Variable assignments for the command that fires the sample."""
    after: str = ""
    """A command that shows or removes the files the hooks created."""


class _Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What ``recipe.json`` says."""

    summary: str
    """What it does, in a sentence."""
    when: str
    """When to use it."""
    needs: tuple[str, ...]
    """Programs that must be installed."""
    event: str
    """The event that the sample is for."""
    trial: RecipeTrial | None = msgspec.field(name="try", default=None)
    """None for the first hook, which has a tutorial."""


class Recipe(_Card, frozen=True, kw_only=True):
    name: str
    hooks: Mapping[str, Sequence[Mapping[str, Any]]]
    """Event name to hook groups, as in a settings file."""
    profile: str
    """The profile that the hooks need: with ``standard``, hooks that act would do nothing."""
    scripts: Mapping[str, str]
    """File name to content."""
    sample: str
    """The event's own fields as JSON, chosen so that the recipe acts on them."""
    tests: str
    """Tests of its hooks, in a list."""
    description: str
    """Markdown."""

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(self.hooks)


def find_recipe(name: str) -> Recipe:
    """Read a recipe from the collection."""
    if name not in (FIRST_HOOK, *NAMES):
        close = closest(name, NAMES)
        hint = f", did you mean `{close}`?" if close else "; `llxprt-hooks init --list` shows them all"
        raise UnknownRecipeError(f"there is no recipe `{name}`{hint}")
    folder = COLLECTION / name
    card = msgspec.json.decode((folder / "recipe.json").read_bytes(), type=_Card)
    settings = msgspec.json.decode((folder / "settings.json").read_bytes(), type=_Settings)
    return Recipe(
        **msgspec.structs.asdict(card),
        name=name,
        hooks=settings.hooks,
        profile=settings.profile,
        scripts={
            file.name: bundled(file.read_text("utf-8"))
            for file in sorted((folder / "hooks").iterdir())
            if file.is_file()
        },
        sample=(folder / "sample.json").read_text("utf-8"),
        tests=(folder / "hooktest.json").read_text("utf-8"),
        description=(folder / "README.md").read_text("utf-8"),
    )


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    hooks: dict[str, list[dict[str, Any]]]
    profile: str = STANDARD
