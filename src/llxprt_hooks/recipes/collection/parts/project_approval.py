from __future__ import annotations

import os


def is_approved(project: str) -> bool:
    """Whether the project's own programs may run. Where the engine does not say, this script has to be a part of it."""
    if (said := os.environ.get("LLXPRT_PROJECT_TRUSTED")) is not None:
        return said == "1"
    return os.path.realpath(__file__).startswith(os.path.realpath(project) + os.sep)
