"""What SQL statements delete, change as a whole, or hand out."""

from __future__ import annotations

import collections.abc
import re

FIRST_WORDS = """drop truncate delete update alter grant rename select with copy insert merge create exec call set begin
explain revoke vacuum replace load shutdown"""
# Tables that are made to be thrown away.
SCRATCH = r"[\"`\[]?(?:\w+\.)?(?:#|te?mp_|test_|scratch_)"
HARMLESS_TO_DROP = """temporary index view materialized trigger function procedure sequence type extension policy rule
statistics"""
SECRET_COLUMN = (
    r"passw(?:or)?d|passwd|pwd|secret|api_?key|private_?key|credit_?card|card_?n|\bcvv|\bssn"
    r"|(?:access|auth|refresh|session)_token"
)
# A condition that is true for all rows.
ALL_ROWS = (
    r"\(*(?:(?P<same>[\w.']{1,50}) ?(?:=|<=|>=|like) ?(?P=same)|true|[\w.]{1,50} ?(?:>= ?0|> ?-? ?[01]|(?:<>|!=) ?''"
    r"|is not null|like '%+'))\)*(?: or .*)?$"
)
# The first words of a statement, what else is in it, and the reason to block it.
STATEMENTS = [
    ("delete update truncate alter drop", r"\baudit(?!_test)", "it would change the record of what was done"),
    ("alter", r"^alter table .*? drop (?!constraint|default|index|not\b)", "it would delete a column and its data"),
    ("alter", r"^alter (?:database|schema) ", "it would take a database away from its users"),
    ("alter create", r"^\w+ (?:user|role|login) ", "it would change who may do what in a database"),
    ("grant", r"^grant (?:all|dba)\b|\b(?:file|super|with grant option|with admin option)\b|\bon \*\.\*",
     "it would give somebody all rights"),
    ("select insert with create", r"\binto (?:out|dump)file\b|\bload_file ?\(|\bpg_read_|\blo_(?:im|ex)port ?\(",
     "it would use files of the database's machine"),
    ("load", r"\binfile\b", "it would use files of the database's machine"),
    ("copy", r"\b(?:from|to) program\b|\bto '/", "it makes the database run a program or write a file"),
    ("select exec call begin", r"\bxp_cmdshell\b|\bsys_exec ?\(",
     "it makes the database run a program or write a file"),
    ("shutdown", "", "it would stop the database"),
    ("set", r"^set (?:global|persist) (?:general_log|log_bin|audit|read_only|super_read_only)",
     "it would turn off a safety of the database"),
]  # fmt: skip


def statements(text: str) -> collections.abc.Iterator[str]:
    """The statements of a text: in lower case, without comments, with single spaces."""
    for statement in re.sub(r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|--[^\n]*|#\s[^\n]*", " ", text).split(";"):
        plain = " ".join(statement.lower().split()).strip("( ")
        plain = re.sub(r"^(?:explain(?: analyze)?|begin|commit|start transaction) ?", "", plain)
        if plain:
            yield plain


def whole_table(statement: str) -> str | None:
    """Why a statement that empties, deletes or changes a whole table is blocked."""
    words = statement.split()
    first = words[0]
    named = [word for word in words[1:] if word not in ("table", "if", "exists", "only", "from", "database", "column")]
    scratch = bool(named) and bool(re.match(SCRATCH, named[0]))
    if first == "drop" and len(words) > 2 and words[1] not in HARMLESS_TO_DROP.split() and not scratch:
        return "it would delete data in a database"
    if first == "truncate" and named and not scratch:
        return "it would delete every row of a table"
    changes = (first == "delete" and "from" in words[1:2]) or (first == "update" and "set" in words)
    _, where, condition = statement.partition(" where ")
    if not changes or (scratch and where) or re.search(r" (?:limit|using|join) ", statement):
        return None
    if not where or re.match(ALL_ROWS, condition):
        return f"it would {'delete' if first == 'delete' else 'change'} every row of a table"
    return None


def sql_reason(text: str) -> str | None:
    """Why SQL statements should not run, or None."""
    for statement in statements(text):
        if reason := whole_table(statement):
            return reason
        first = statement.split()[0]
        for starts, pattern, reason in STATEMENTS:
            if first in starts.split() and re.search(pattern, statement):
                return reason
        shown = statement.partition(" from ")[0]
        if first in ("select", "with") and " from " in statement and re.search(SECRET_COLUMN, shown):
            return "it would show secrets that a database keeps"
    return None


def is_sql(text: str) -> bool:
    first = next(statements(text[:10_000]), "").split()[:1]
    return bool(first) and first[0] in FIRST_WORDS.split()
