"""Asking a person in a framework's own way, where the run is suspended until the answer comes (D-127).

The answer arrives in a later run, perhaps in another process. It counts only for the call that the person was asked
about: the same tool with the same arguments, once, and within five minutes.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from llxprt_hooks.core.calls.approval import ApprovalRequest

EXPIRES_AFTER: Final = 300.0
"""How many seconds a person has to answer."""
_REMEMBERED: Final = 10_000


def question_about(request: ApprovalRequest) -> dict[str, Any]:
    """Return what identifies a question, for the answer to it."""
    return {"digest": request.digest, "expires": time.time() + EXPIRES_AFTER}


class OpenQuestions:
    """The questions that have been asked, by the framework's id of the call.

    A question is a JSON object. The program may return it with the answer; it must if another process resumes the run.
    """

    def __init__(self) -> None:
        self._asked: OrderedDict[Hashable, dict[str, Any]] = OrderedDict()
        self._answered: set[Hashable] = set()

    def ask(self, call: Hashable, request: ApprovalRequest) -> dict[str, Any]:
        """Remember what a person is asked, and return what identifies the question."""
        question = question_about(request)
        self.asked(call, question)
        return question

    def is_open(self, call: Hashable) -> bool:
        """Whether a person has been asked about a call that is not over."""
        return call in self._asked

    def asked(self, call: Hashable, question: dict[str, Any]) -> None:
        """Remember that the run is suspended until a person answers."""
        self._asked[call] = question
        self._answered.discard(call)
        if len(self._asked) > _REMEMBERED:
            self.close(next(iter(self._asked)))

    def accepts(self, call: Hashable, request: ApprovalRequest, returned: Any = None) -> bool:
        """Whether an answer is for this request, and came in time. A run may be resumed again while its call lasts."""
        question = returned if isinstance(returned, Mapping) else self._asked.get(call, {})
        expires = question.get("expires")
        in_time = call in self._answered or (isinstance(expires, (int, float)) and time.time() <= expires)
        if question.get("digest") != request.digest or not in_time:
            return False
        self._answered.add(call)
        return True

    def close(self, call: Hashable) -> None:
        """Forget a call that is over: another one needs another answer."""
        self._asked.pop(call, None)
        self._answered.discard(call)
