"""The tags of messages, events, log records and frames are part of file and wire formats, and never change."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import sys
import textwrap
from importlib import import_module

import msgspec
import pytest

import collabtop as ct

TAGS = {
    # messages between coordinator and agents, in the table of collabtop.protocol.messages
    "collabtop.protocol.messages.Accepted": "Accepted",
    "collabtop.protocol.messages.Bill": "Bill",
    "collabtop.protocol.messages.Border": "Border",
    "collabtop.protocol.messages.Charged": "Charged",
    "collabtop.protocol.messages.CoarseMeans": "CoarseMeans",
    "collabtop.protocol.messages.Cut": "Cut",
    "collabtop.protocol.messages.Deal": "Deal",
    "collabtop.protocol.messages.Hand": "Hand",
    "collabtop.protocol.messages.HandOver": "HandOver",
    "collabtop.protocol.messages.Held": "Held",
    "collabtop.protocol.messages.Means": "Means",
    "collabtop.protocol.messages.Narrow": "Narrow",
    "collabtop.protocol.messages.Moments": "Moments",
    "collabtop.protocol.messages.OpenArms": "OpenArms",
    "collabtop.protocol.messages.SendSquares": "SendSquares",
    "collabtop.protocol.messages.Prune": "Prune",
    "collabtop.protocol.messages.Pull": "Pull",
    "collabtop.protocol.messages.PullHand": "PullHand",
    "collabtop.protocol.messages.PullOpen": "PullOpen",
    "collabtop.protocol.messages.Sample": "Sample",
    "collabtop.protocol.messages.TimeUsed": "TimeUsed",
    "collabtop.protocol.messages.Values": "Values",
    "collabtop.protocol.messages.Window": "Window",
    # messages of agent extensions
    "collabtop.algorithms.fed_elim.FinishLocal": "fed-elim.FinishLocal",
    "collabtop.algorithms.fed_elim.GlobalMeans": "fed-elim.GlobalMeans",
    "collabtop.algorithms.fed_elim.LocalTop": "fed-elim.LocalTop",
    "collabtop.algorithms.fed_elim.PullBoth": "fed-elim.PullBoth",
    "collabtop.algorithms.shared.local_best.Best": "local-best.Best",
    "collabtop.algorithms.shared.local_best.FindBest": "local-best.FindBest",
    # records of logs and journals
    "collabtop.runlog.format.AgentStatus": "AgentStatus",
    "collabtop.runlog.format.Exchange": "Exchange",
    "collabtop.runlog.format.FailedAttempt": "FailedAttempt",
    "collabtop.runlog.format.Extended": "Extended",
    "collabtop.runlog.format.Finished": "Finished",
    "collabtop.runlog.format.Header": "Header",
    "collabtop.runlog.format.JournalHeader": "JournalHeader",
    "collabtop.runlog.format.RemoteRun": "RemoteRun",
    "collabtop.runlog.format.Rewards": "Rewards",
    "collabtop.runlog.format.SingleReward": "Reward",
    "collabtop.runlog.format.StudyHeader": "StudyHeader",
    "collabtop.runlog.format.StudyRows": "StudyRows",
    "collabtop.runlog.format.Sums": "Sums",
    "collabtop.runlog.format.Timestamp": "Timestamp",
    "collabtop.runlog.format.ReportedRewards": "ReportedRewards",
    # events
    "collabtop.events.Exchanged": "Exchanged",
    "collabtop.events.Listening": "Listening",
    "collabtop.events.PullFailed": "PullFailed",
    "collabtop.events.PullsMade": "PullsMade",
    "collabtop.events.RoundBegan": "RoundBegan",
    "collabtop.events.RunEnded": "RunEnded",
    "collabtop.events.RunStarted": "RunStarted",
    "collabtop.events.Scored": "Scored",
    "collabtop.events.SiteChanged": "SiteChanged",
    # frames between coordinator and sites
    "collabtop.teams.sites.frames.Hello": 1,
    "collabtop.teams.sites.frames.Welcome": 2,
    "collabtop.teams.sites.frames.Refused": 3,
    "collabtop.teams.sites.frames.Ready": 4,
    "collabtop.teams.sites.frames.Declined": 5,
    "collabtop.teams.sites.frames.Ask": 6,
    "collabtop.teams.sites.frames.Answer": 7,
    "collabtop.teams.sites.frames.Failed": 8,
    "collabtop.teams.sites.frames.Done": 9,
}
"""The tag of every tagged class. If a class is renamed or moved, change its path here, but never its tag."""

BASES = {"collabtop.protocol.messages.Message", "collabtop.events.Event"}
"""Base classes, which are never encoded themselves."""


def path_of(kind):
    return f"{kind.__module__}.{kind.__qualname__}"


def subclasses_of(kind):
    for subclass in kind.__subclasses__():
        yield subclass
        yield from subclasses_of(subclass)


@pytest.fixture(scope="module")
def tagged():
    """All tagged classes of the package, by path."""
    for module in pkgutil.walk_packages(ct.__path__, "collabtop."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    classes = [kind for kind in subclasses_of(msgspec.Struct) if kind.__module__.split(".")[0] == "collabtop"]
    # An example in a docstring defines classes too.
    classes = [kind for kind in classes if getattr(sys.modules[kind.__module__], kind.__name__, None) is kind]
    return {path_of(kind): kind for kind in classes if kind.__struct_config__.tag is not None}


def test_every_tagged_class_has_the_tag_of_the_list(tagged):
    assert {path: kind.__struct_config__.tag for path, kind in tagged.items() if path not in BASES} == TAGS


def test_no_tag_is_derived_from_the_name_of_its_class(tagged):
    assert [path for path, kind in tagged.items() if path not in BASES and not states_its_tag(kind)] == []


def states_its_tag(kind):
    """Whether the class statement has a literal tag: an inherited `tag=True` would change with the name."""
    (statement,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(statement, ast.ClassDef)
    tags = [keyword.value for keyword in statement.keywords if keyword.arg == "tag"]
    return len(tags) == 1 and isinstance(tags[0], ast.Constant) and type(tags[0].value) in (str, int)


class Unpinned(ct.events.Event, frozen=True):
    """An event that inherits `tag=True`."""


class Renamed(ct.events.Event, frozen=True, tag="Original"):
    """An event whose tag is not its name."""


def test_an_inherited_tag_is_noticed():
    assert not states_its_tag(Unpinned)
    assert states_its_tag(Renamed)


@pytest.mark.parametrize("union", ["messages", "log records", "frames"])
def test_no_tag_occurs_twice_in_one_format(union):
    prefix = {
        "messages": "collabtop.protocol.",
        "log records": "collabtop.runlog.",
        "frames": "collabtop.teams.sites.frames.",
    }[union]
    tags = [tag for path, tag in TAGS.items() if path.startswith(prefix)]
    assert len(tags) == len(set(tags)) > 0
