"""Requests to the server of the page."""

from __future__ import annotations

import json
import urllib.request
from typing import Any


def get_json(url: str) -> Any:
    """The JSON at an address, without a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        return json.load(answer)
