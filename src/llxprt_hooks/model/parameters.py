"""A request to the Gemini API through google-genai. This module does not import the SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GenerateContentParameters:
    """The arguments of ``client.models.generate_content``: google-genai's own types, in any form that it accepts."""

    model: str
    contents: Any
    config: Any = None
