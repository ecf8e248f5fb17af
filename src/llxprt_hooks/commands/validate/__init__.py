"""Mistakes and likely mistakes in settings files, and the JSON Schema for editors.

>>> from pathlib import Path
>>> for each in diagnose(inspect_project(Path("."))): print(each.file, each.line, each.message)  # doctest: +SKIP
"""

from llxprt_hooks.commands.validate.diagnose import diagnose
from llxprt_hooks.commands.validate.diagnostic import Diagnostic
from llxprt_hooks.commands.validate.inspection import Inspection, inspect_file, inspect_project, project_of
from llxprt_hooks.commands.validate.json_schema import settings_schema
from llxprt_hooks.commands.validate.rules import Rule, Severity

__all__ = [
    "Diagnostic",
    "Inspection",
    "Rule",
    "Severity",
    "diagnose",
    "inspect_file",
    "inspect_project",
    "project_of",
    "settings_schema",
]
