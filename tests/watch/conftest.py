"""One browser for all tests of the page."""

from tests.support.browser import browser, live_run, serve, tab

__all__ = ["browser", "live_run", "serve", "tab"]
