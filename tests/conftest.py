"""What holds for all tests."""

import os

# Workers that run tests side by side inherit the size of a terminal, which programs under test would take for theirs.
for variable in ("COLUMNS", "LINES"):
    os.environ.pop(variable, None)
