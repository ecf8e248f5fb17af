from __future__ import annotations

import pytest

from llxprt_hooks.translator.genai_v1 import HookTranslatorGenAIv1


@pytest.fixture
def translator() -> HookTranslatorGenAIv1:
    return HookTranslatorGenAIv1()
