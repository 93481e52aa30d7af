"""Access to the page: read-only, on this machine or with a token; and the headers that restrict browsers."""

from __future__ import annotations

import urllib.error
import urllib.request
from importlib.resources import files

import pytest

import collabtop as ct
from collabtop.watch.serve import Page
from collabtop.watch.watched_runs import Runs


def request(url, method="GET", data=None, **headers):
    prepared = urllib.request.Request(url, data=data, method=method, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    try:
        with opener.open(prepared, timeout=10) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


@pytest.fixture
def folder(tmp_path):
    ct.identify(ct.BernoulliArms([0.9, 0.1]), 1, agents=2, horizon=50, seed=1, checkpoint=tmp_path / "a.ctlog")
    (tmp_path.parent / "outside.ctlog").touch()
    return tmp_path


def test_headers_forbid_loading_anything_from_elsewhere(serve, folder):
    for path in ("", "page/page.js", "api/runs", "api/runs/a.ctlog/result.json"):
        status, _, headers = request(serve(folder) + path)
        assert status == 200
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


def test_the_page_itself_contains_no_other_address(serve, folder):
    url = serve(folder)
    scripts = [file.name for file in (files("collabtop.watch") / "page").iterdir()]
    assert "page.js" in scripts
    for name in ("", *(f"page/{script}" for script in scripts)):
        text = request(url + name)[1].replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(serve, folder, method):
    before = (folder / "a.ctlog").read_bytes()
    url = serve(folder)
    for path in ("", "api/runs/a.ctlog", "enter"):
        assert request(url + path, method, data=b"x=1")[0] in (404, 405)
    assert (folder / "a.ctlog").read_bytes() == before


@pytest.mark.parametrize("name", ["..%2Foutside.ctlog", "outside.ctlog", "..%2F..%2Fetc%2Fpasswd", "b.ctlog"])
def test_only_listed_runs_can_be_viewed(serve, folder, name):
    url = serve(folder)
    assert request(f"{url}api/runs/{name}")[0] == 404
    assert request(f"{url}api/runs/{name}/table.csv")[0] == 404
    assert request(f"{url}page/{name}")[0] == 404


def test_a_web_site_whose_name_resolves_to_this_machine_gets_nothing(serve, folder):
    url = serve(folder)
    assert request(url + "api/runs", Host="evil.example")[0] == 421
    assert request(url + "api/runs", Host="localhost:80")[0] == 200


def test_a_token_is_asked_for_and_kept_in_a_cookie(serve, folder):
    url = serve(folder, token="long and secret")
    address = url.partition("?")[0]
    status, text, _ = request(address)
    assert (status, "Token required" in text) == (401, True)
    assert request(address + "api/runs")[0] == 401
    assert request(address + "api/runs/a.ctlog/events", Cookie="collabtop=wrong")[0] == 401
    assert request(address + "enter", "POST", b"token=wrong")[0] == 401
    for answer in (
        request(address + "?token=long+and+secret"),
        request(address + "enter", "POST", b"token=long+and+secret"),
    ):
        status, _, headers = answer
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert request(address + "api/runs", Cookie=cookie.partition(";")[0])[0] == 200
    assert request(address + "api/runs", Authorization="Bearer long and secret")[0] == 200
    assert request(address + "api/runs", Authorization="Bearer long and secre")[0] == 401


def test_a_random_token_is_required_on_other_addresses():
    page = Page(Runs(), host="0.0.0.0")
    assert len(page.token) >= 16
    assert page.token in page.url
    page.close()
    local = Page(Runs(), host="localhost")
    assert local.token is None
    local.close()


def test_bad_addresses_and_short_tokens_are_refused():
    with pytest.raises(ct.InputError, match="cannot serve at host 'nowhere"):
        Page(Runs(), host="nowhere.invalid")
    with pytest.raises(ct.InputError, match="token has 5 characters, but at least 8 are needed"):
        Page(Runs(), token="short")
    first = Page(Runs())
    with pytest.raises(ct.InputError, match="already in use; try a different --port"):
        Page(Runs(), port=first.port)
    first.close()
