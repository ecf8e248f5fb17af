"""A request to the Gemini API, as google-genai takes it. Importable where that SDK is not installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GenerateContentParameters:
    """What ``client.models.generate_content`` takes: google-genai's own types, in any form that it accepts."""

    model: str
    contents: Any
    config: Any = None
