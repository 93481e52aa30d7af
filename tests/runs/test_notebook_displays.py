"""What notebooks show: results with their warnings, progress that is updated in place, and the page of a run."""

from __future__ import annotations

import subprocess
import sys
import urllib.request

import pytest

import collabtop as ct
from collabtop.runs import progress
from collabtop.runs.progress import RunState


def test_the_html_of_a_result_carries_its_warnings_and_no_markup_of_labels():
    arms = ct.BernoulliArms([0.5] * 40, labels=["<b>a</b>", *map(str, range(39))])
    result = ct.identify(arms, m=5, agents=2, horizon=300, algorithm="uniform", seed=1)
    html = result._repr_html_()
    assert result.warnings
    assert html.count("<li>") == len(result.warnings)
    assert "<b>a</b>" not in html
    assert "&lt;b&gt;a&lt;/b&gt;" in html


def test_the_html_of_a_result_states_its_cost():
    result = ct.identify(["a", "b"], 1, pull=lambda name, rng: ct.Reward(0.5, cost=0.25), agents=1, horizon=8, seed=1)
    assert "cost 2, " in result._repr_html_()


def test_a_study_is_a_table_of_its_points():
    arms = ct.datasets.uniform_means(10, seed=1)
    study = ct.Study(arms=arms, algorithms=["kzz", "uniform"], m=[1], agents=[2], horizon=[300], runs=3, seed=3)
    table = study.run(None, jobs=1)
    html = table._repr_html_()
    assert html.startswith("<p>6 runs</p><table>")
    assert html.count("<tr>") == 3
    assert f"{table.points()[0].error:.4f}" in html


class Handle:
    """What IPython's `display` returns: it shows the next value in the same place."""

    def __init__(self, value):
        self.shown = [value]

    def update(self, value):
        self.shown.append(value)


@pytest.fixture
def notebook(monkeypatch):
    """A notebook: Rich takes the console for one, and what is displayed is collected."""
    handles = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)

    def display(value, *, display_id):
        assert display_id
        handles.append(Handle(value))
        return handles[-1]

    monkeypatch.setattr("IPython.display.display", display)
    return handles


def test_progress_is_one_bar_that_is_updated_in_place(notebook, capfd):
    with progress.progress_display(None) as watch:
        watch(ct.events.RunStarted("kzz", n=8, m=1, agents=2, horizon=50, seed=1, known_pulls=0))
        watch(ct.events.PullsMade(0, 25, recalled=False))
    (handle,) = notebook
    assert handle.shown[-1].pulls == 25
    assert '<progress value="25" max="100"' in handle.shown[-1]._repr_html_()
    assert "25 pulls made" in str(handle.shown[-1])
    assert capfd.readouterr().err == ""


def test_without_ipython_progress_is_plain_text(notebook, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with progress.progress_display(None) as watch:
        watch(ct.events.PullsMade(0, 25, recalled=False))
    assert "25 pulls made" in capfd.readouterr().err


def test_progress_without_pulls_is_an_empty_bar():
    assert 'value="0" max="1"' in RunState().progress()._repr_html_()


def test_a_run_without_a_log_has_no_page():
    with ct.start(ct.BernoulliArms([0.9, 0.1]), m=1, agents=2, horizon=50, seed=1) as run:
        run.result()
        with pytest.raises(ct.InputError, match="the run has no log, but view") as error:
            run.view()
        assert "<progress" in run._repr_html_()
    assert error.value.argument == "checkpoint"


VIEW = """
import sys, urllib.request, collabtop as ct
with ct.start(ct.BernoulliArms([0.9, 0.1]), m=1, agents=2, horizon=50, seed=1, checkpoint=sys.argv[1]) as run:
    run.result()
    view = run.view(height=500)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with opener.open(view.url) as answer:
    print(answer.status, answer.headers["content-security-policy"].rpartition(";")[2].strip())
print(view._repr_html_())
"""


@pytest.mark.slow
def test_the_view_of_a_run_is_its_page_in_a_frame_that_notebooks_may_show(tmp_path):
    command = [sys.executable, "-c", VIEW, str(tmp_path / "a run.ctlog")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()
    assert lines[0] == "200 frame-ancestors 'self' http://localhost:* http://127.0.0.1:*"
    assert lines[1].startswith('<iframe src="http://127.0.0.1:')
    assert 'runs/a%20run.ctlog" title="a run.ctlog" width="100%" height="500"' in lines[1]


def test_a_page_with_a_token_is_never_framed(tmp_path):
    from collabtop.watch.watched_runs import Runs
    from tests.support.page_server import page_in_thread

    with page_in_thread(Runs([tmp_path]), token="long-and-secret") as page:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(page.address, headers={"Authorization": "Bearer long-and-secret"})
        with opener.open(request) as answer:
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
