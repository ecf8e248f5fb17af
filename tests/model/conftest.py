from __future__ import annotations

import pytest

from llxprt_hooks.model.google_genai import HookTranslatorGenAIv1


@pytest.fixture
def translator() -> HookTranslatorGenAIv1:
    return HookTranslatorGenAIv1()
