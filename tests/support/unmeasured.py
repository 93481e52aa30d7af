"""For child processes that coverage must not slow down, and whose disk space it must not use."""

import os


def unmeasured() -> dict[str, str]:
    """The environment without the variables that turn coverage on."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
