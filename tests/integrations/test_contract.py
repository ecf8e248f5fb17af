"""The contract itself, through plain ``Hooks``: asynchronous and synchronous, without any framework."""

import pytest

from tests.integrations.contract import EFFECTS, Driver, Effect, check
from tests.integrations.reference import HooksDriver, SyncHooksDriver
from tests.support.project import Project

DRIVERS = (HooksDriver(), SyncHooksDriver())


@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: type(driver).__name__)
@pytest.mark.parametrize("effect", EFFECTS, ids=str)
def test_contract(effect: Effect, driver: Driver, sandbox: Project, caplog: pytest.LogCaptureFixture) -> None:
    check(effect, driver, sandbox, caplog)


def test_effects_have_their_own_names() -> None:
    assert len(set(map(str, EFFECTS))) == len(EFFECTS) > 40
