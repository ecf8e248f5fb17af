"""Whether another user could have written a file: its owner, its mode, and every folder and link on the way to it.

A file is the user's if it belongs to the user or to root, and nobody else may write to it. The same holds for each
folder above it, because a user who can write to a folder can replace what is in it; a sticky bit prevents that. The
owner's private group counts as the owner, so a umask of 002 works (D-34). Access control lists are not looked at.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from llxprt_hooks._support.text import escape_for_terminal
from llxprt_hooks.settings.document import Document, read_document
from llxprt_hooks.settings.problem import Problem

_PROC: Final = Path("/proc")


def read_own_document(file: Path, consequence: str = "so this file is ignored") -> Document | Problem | None:
    """Read a file as ``read_document`` does; a problem if another user could have written it."""
    document = read_document(file)
    objection = other_writers(document) if isinstance(document, Document) else None
    return Problem(file, 1, 1, f"{objection}, {consequence}") if objection else document


def other_writers(document: Document, *, only_root: bool = False) -> str | None:
    """Return why others could have written a file, for the user; None if they could not.

    With ``only_root``, the user is one of the others.
    """
    owners = root_ids() if only_root else {os.geteuid(), *root_ids()}
    return _objection("this file", document.status, owners) or folder_writers(document.file, owners)


def folder_writers(file: Path, owners: Collection[int] = ()) -> str | None:
    """Return why others could replace a file, existing or not; None if they could not."""
    owners = owners or {os.geteuid(), *root_ids()}
    try:
        for path, status in _way_to(file):
            kind = "link" if stat.S_ISLNK(status.st_mode) else "folder"
            if objection := _objection(f"the {kind} {escape_for_terminal(str(path))}", status, owners):
                return objection
    except OSError as error:
        return f"{escape_for_terminal(str(error.filename))} cannot be inspected: {error.strerror}"
    return None


def root_ids() -> set[int]:
    """Return the user ids that root's files have.

    In a user namespace that does not know the machine's root, such as a sandbox, they have the placeholder id.
    """
    try:
        rows = [tuple(map(int, row.split())) for row in (_PROC / "self/uid_map").read_text().splitlines()]
        placeholder = int((_PROC / "sys/kernel/overflowuid").read_text())
    except OSError:  # not Linux
        return {0}
    knows_root = any(outside == 0 for _, outside, _ in rows)
    is_taken = any(inside <= placeholder < inside + count for inside, _, count in rows)
    return {0} if knows_root or is_taken else {0, placeholder}


def _objection(what: str, status: os.stat_result, owners: Collection[int]) -> str | None:
    if status.st_uid not in owners:
        return f"{what} belongs to {_user_name(status.st_uid)}"
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode) or (stat.S_ISDIR(status.st_mode) and mode & stat.S_ISVTX):
        return None
    by_others = mode & stat.S_IWOTH
    by_group = mode & stat.S_IWGRP and not _is_private_group(status.st_uid, status.st_gid)
    if by_others or by_group:
        return f"group or others may write to {what} (mode {mode:04o}; fix it with `chmod go-w`)"
    return None


def _way_to(file: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every folder and link that is passed to reach a file, each before it is followed."""
    at, parts = Path("/"), list(reversed(file.absolute().parts[1:]))
    yield at, at.lstat()
    while parts:
        part = parts.pop()
        if part == "..":
            at = at.parent
            continue
        step = at / part
        if not parts and not step.is_symlink():
            return  # the file itself
        status = step.lstat()
        yield step, status
        if stat.S_ISLNK(status.st_mode):
            target = step.readlink()
            at = Path("/") if target.is_absolute() else at
            parts += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        else:
            at = step


def _is_private_group(owner: int, group: int) -> bool:
    """Return whether a group is the owner's primary group, has the owner's name and no other members.

    The name matters because a directory service need not list its users: then nobody seems to share a group.
    """
    try:
        user, found = pwd.getpwuid(owner), grp.getgrgid(group)
    except KeyError:
        return False
    primary = {each.pw_name for each in pwd.getpwall() if each.pw_gid == group}
    is_own = user.pw_gid == group and found.gr_name == user.pw_name
    return is_own and {*found.gr_mem, *primary} <= {user.pw_name}


def _user_name(owner: int) -> str:
    try:
        return f"the user {escape_for_terminal(pwd.getpwuid(owner).pw_name)}"
    except KeyError:
        return f"the user with the id {owner}"
