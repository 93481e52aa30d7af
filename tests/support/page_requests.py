"""Requests to the server of the page."""

from __future__ import annotations

import json
import urllib.request
from typing import Any


def get_json(url: str, token: str | None = None) -> Any:
    """The JSON at an address, without a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with opener.open(urllib.request.Request(url, headers=headers), timeout=10) as answer:
        return json.load(answer)
