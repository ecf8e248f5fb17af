"""Settings that another program changes between reading and writing."""

from __future__ import annotations

from pathlib import Path

import pytest

from llxprt_hooks.commands.migrate import DIALECTS, MigrationError, plan_migration, write_migration
from llxprt_hooks.recipes.catalogue import find_recipe
from llxprt_hooks.recipes.install import InstallError, install, plan_installation
from llxprt_hooks.settings.document import ChangedMeanwhileError, rewrite

MINE = '{ "theme": "dark" } // mine\n'


def test_a_text_is_replaced_where_it_is_still_the_one_that_was_read(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "settings.json"

    rewrite(file, "", "{}")
    rewrite(file, "{}", '{"a": 1}')

    assert file.read_text() == '{"a": 1}'
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("now", [MINE, "{ broken", ""])
def test_a_file_that_has_changed_is_not_overwritten(tmp_path: Path, now: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(now)

    with pytest.raises(ChangedMeanwhileError, match=r"settings\.json was changed by another program in the meantime"):
        rewrite(file, "{}", '{"a": 1}')

    assert file.read_text() == now


def test_installing_a_recipe_overwrites_no_change(project: Path, project_file: Path) -> None:
    planned = plan_installation(project, [find_recipe("first-hook")], {})
    project_file.parent.mkdir(exist_ok=True)
    project_file.write_text(MINE)

    with pytest.raises(InstallError, match="run `llxprt-hooks init` again"):
        install(planned)

    assert project_file.read_text() == MINE


def test_a_migration_overwrites_no_change(project: Path, project_file: Path) -> None:
    source = project / ".claude" / "settings.json"
    source.parent.mkdir()
    source.write_text('{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "true"}]}]}}')
    planned = plan_migration(DIALECTS["claude"], source, project)
    project_file.parent.mkdir(exist_ok=True)
    project_file.write_text(MINE)

    with pytest.raises(MigrationError, match="changed by another program"):
        write_migration(planned)

    assert project_file.read_text() == MINE
