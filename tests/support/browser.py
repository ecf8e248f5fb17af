"""A real browser: Debian's chromium with its driver, without a window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

PROGRAMS = ("chromium", "chromedriver")


def need_browser() -> None:
    """Skip a test where no browser is installed."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not installed: apt-get install chromium chromium-driver")


@contextmanager
def browsing(width: int = 1280, height: int = 800, *, dark: bool = False, scale: float = 1) -> Iterator[Chrome]:
    """Start a browser with a window of that size."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    program, driver = (shutil.which(name) for name in PROGRAMS)
    options = ChromeOptions()
    options.binary_location = str(program)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # The sandbox does not work for root and in containers; this browser opens only the page under test.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    browser = Chrome(options=options, service=Service(driver))
    try:
        screen = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        yield browser
    finally:
        browser.quit()
