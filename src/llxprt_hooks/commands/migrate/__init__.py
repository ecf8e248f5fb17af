"""Migration: converts the hooks in another agent's settings file.

>>> from llxprt_hooks.commands.migrate.matchers import translate_tools
>>> translate_tools("Write|Edit").matcher
'^(write_file|replace)$'
"""

from llxprt_hooks.commands.migrate.dialects import DIALECTS, Dialect
from llxprt_hooks.commands.migrate.plan import Migration, MigrationError, NoSourceError, plan_migration, write_migration

__all__ = ["DIALECTS", "Dialect", "Migration", "MigrationError", "NoSourceError", "plan_migration", "write_migration"]
