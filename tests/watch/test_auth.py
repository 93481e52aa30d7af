"""Who may look: read only, this machine only, elsewhere with the token; and what browsers are told to refuse."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

import collabtop as ct
from collabtop.watch.runs import Runs
from collabtop.watch.serve import Page
from tests.support.browser import serve


def ask(url, method="GET", data=None, **headers):
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    try:
        with opener.open(request, timeout=10) as answer:
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


def test_a_browser_is_told_to_load_nothing_from_elsewhere(serve, folder):
    for path in ("", "page/page.js", "api/runs", "api/runs/a.ctlog/result.json"):
        status, _, headers = ask(serve(folder) + path)
        assert status == 200
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


def test_the_page_itself_names_no_other_address(serve, folder):
    url = serve(folder)
    for name in ("", "page/page.js", "page/run.js", "page/list.js", "page/drawing.js", "page/style.css"):
        said = ask(url + name)[1].replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in said
        assert "https://" not in said


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(serve, folder, method):
    before = (folder / "a.ctlog").read_bytes()
    url = serve(folder)
    for path in ("", "api/runs/a.ctlog", "enter"):
        assert ask(url + path, method, data=b"x=1")[0] in (404, 405)
    assert (folder / "a.ctlog").read_bytes() == before


@pytest.mark.parametrize("name", ["..%2Foutside.ctlog", "outside.ctlog", "..%2F..%2Fetc%2Fpasswd", "b.ctlog"])
def test_only_the_runs_that_are_listed_can_be_seen(serve, folder, name):
    url = serve(folder)
    assert ask(f"{url}api/runs/{name}")[0] == 404
    assert ask(f"{url}api/runs/{name}/table.csv")[0] == 404
    assert ask(f"{url}page/{name}")[0] == 404


def test_another_site_whose_name_points_here_gets_nothing(serve, folder):
    url = serve(folder)
    assert ask(url + "api/runs", Host="evil.example")[0] == 421
    assert ask(url + "api/runs", Host="localhost:80")[0] == 200


def test_with_a_token_it_is_asked_for_and_kept_in_a_cookie(serve, folder):
    url = serve(folder, token="long and secret")
    address = url.partition("?")[0]
    status, said, _ = ask(address)
    assert (status, "A token is needed" in said) == (401, True)
    assert ask(address + "api/runs")[0] == 401
    assert ask(address + "api/runs/a.ctlog/events", Cookie="collabtop=wrong")[0] == 401
    assert ask(address + "enter", "POST", b"token=wrong")[0] == 401
    for answer in (ask(address + "?token=long+and+secret"), ask(address + "enter", "POST", b"token=long+and+secret")):
        status, _, headers = answer
        assert (status, headers["location"]) == (303, "/")
        cookie = headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert ask(address + "api/runs", Cookie=cookie.partition(";")[0])[0] == 200
    assert ask(address + "api/runs", Authorization="Bearer long and secret")[0] == 200
    assert ask(address + "api/runs", Authorization="Bearer long and secre")[0] == 401


def test_on_other_addresses_a_token_is_drawn():
    page = Page(Runs(), host="0.0.0.0")
    assert len(page.token) >= 16
    assert page.token in page.url
    page.close()
    here = Page(Runs(), host="localhost")
    assert here.token is None
    here.close()


def test_bad_addresses_and_short_tokens_are_refused():
    with pytest.raises(ct.InputError, match="cannot serve at host 'nowhere"):
        Page(Runs(), host="nowhere.invalid")
    with pytest.raises(ct.InputError, match="shorter than 8"):
        Page(Runs(), token="short")
    first = Page(Runs())
    with pytest.raises(ct.InputError, match="already in use; try another --port"):
        Page(Runs(), port=first.port)
    first.close()
