"""`collabtop coordinate --watch`: the page shows what the coordinator knows, and nothing that stayed at a site."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest

from tests.support.site_processes import Trial


def fetch(url):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=10) as answer:
        return json.load(answer)


@pytest.mark.slow
def test_the_page_shows_a_run_over_sites(tmp_path, certs):
    run = Trial(tmp_path, certs, algorithm="frugal-top", pull_seconds=0)
    try:
        run.start_coordinator("--watch")
        for number in range(2):
            run.start_site(number)
        result = run.result()
    finally:
        run.stop()
    url = re.search(r"watch it at (http://\S+)", run.stderr("coordinator"))[1]
    shown = fetch(url + "api/runs/run.ctlog")
    assert shown["status"]["status"] == "finished"
    assert (shown["communication"]["words"], shown["progress"]["time"]) == (result["words"], result["time"])
    assert sum(shown["agents"]["pulls"]) == result["pulls"]
    assert not any(shown["arms"]["seen_pulls"])
    assert shown["answer"]["top"] == result["top_indices"]
    assert fetch(url + "api/runs/run.ctlog/result.json")["rounds"] == result["rounds"]
