"""Studies from TOML files, and the errors of malformed ones."""

import re

import pytest

import collabtop as ct
from collabtop.studies.files import read_study

GOOD = """
algorithms = ["kzz", {name = "collab-top-iid", schedule = "full"}]
m = [1, 2]
agents = 3
horizon = [400, 800]
runs = 7
seed = 5

[arms.mine]
means = "means.txt"

[arms.listed]
means = [0.9, 0.5, 0.4, 0.2, 0.1]

[arms.hard]
instance = "equal_gaps"
n = 16
m = 2
gap = 0.25
"""


@pytest.fixture
def write(tmp_path):
    (tmp_path / "means.txt").write_text("0.9\n0.5\n0.4\n0.3\n0.2\n")

    def file(text):
        path = tmp_path / "study.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return file


def test_a_file_is_the_study_that_its_keys_say(write):
    arms = {
        "mine": ct.BernoulliArms([0.9, 0.5, 0.4, 0.3, 0.2]),
        "listed": ct.BernoulliArms([0.9, 0.5, 0.4, 0.2, 0.1]),
        "hard": ct.datasets.equal_gaps(16, 2, 0.25),
    }
    algorithms: list[str | ct.Algorithm] = ["kzz", ct.CollabTopIID(schedule="full")]
    by_hand = ct.Study(arms=arms, algorithms=algorithms, m=[1, 2], agents=3, horizon=[400, 800], runs=7, seed=5)
    assert read_study(write(GOOD)).fingerprint == by_hand.fingerprint


def test_single_values_need_no_brackets_and_defaults_are_those_of_a_study(write):
    study = read_study(write('algorithms = "kzz"\nhorizon = 100\nagents = 2\narms.a = {means = [0.9, 0.1]}'))
    assert [(point.m, point.agents, point.runs, point.seed) for point in study.points] == [(1, 2, 100, 0)]


def test_non_iid_arms_have_weights(write, tmp_path):
    (tmp_path / "table.txt").write_text("0.9 0.8\n0.1 0.2\n")
    text = """
algorithms = "uniform"
horizon = 2_000
arms.file = {means = "table.txt", weights = [1, 3]}
arms.listed = {means = [[0.9, 0.8], [0.1, 0.2]], weights = [1, 3]}
arms.sets = {instance = "set_disjointness", X = [[1, 0], [1, 1]], weights = [3, 1]}
"""
    arms = read_study(write(text)).arms
    assert {name: it.weights for name, it in arms.items()} == {
        "file": (0.5, 1.5), "listed": (0.5, 1.5), "sets": (1.5, 0.5),
    }  # fmt: skip


def test_datasets_and_non_iid_arms(write):
    text = """
algorithms = "uniform"
horizon = 2_000
arms.films = {dataset = "movielens_like_groups"}
arms.two = {means = [[0.9, 0.8], [0.1, 0.2]]}
arms.sets = {instance = "set_disjointness", X = [[1, 0], [1, 1]]}
"""
    assert [(point.arms, point.agents) for point in read_study(write(text)).points] == [
        ("films", 10), ("two", 2), ("sets", 2),
    ]  # fmt: skip


BASE = {"algorithms": '"kzz"', "horizon": "400", "agents": "3", "arms.a": "{means = [0.9, 0.5, 0.1]}"}


def text_with(**changes):
    keys = BASE | {key.replace("__", "."): value for key, value in changes.items()}
    return "\n".join(f"{key} = {value}" for key, value in keys.items() if value is not None)


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        (
            {"colour": "1"},
            "colour",
            "colour is not a key here: the keys are arms, algorithms, m, agents, horizon, runs, ",
        ),
        ({"algorithms": None}, None, "algorithms is missing"),
        ({"horizon": None}, None, "horizon is missing"),
        ({"arms__a": None}, None, "arms is missing"),
        ({"arms__a": None, "arms": "{}"}, "arms", "arms is empty"),
        ({"arms__a": None, "arms": "3"}, "arms", "arms is 3, but tables are needed"),
        ({"arms__a": "0.5"}, "arms.a", "0.5 is no set of arms: a table"),
        ({"algorithms": "[]"}, "algorithms", "algorithms is empty"),
        ({"m": "[]"}, "m", "m is empty"),
        ({"horizon": "[]"}, "horizon", "horizon is empty"),
        ({"horizon": "[400, 1.5]"}, "horizon", "horizon is 1.5, but a whole number of at least 1 is needed"),
        ({"horizon": "-5"}, "horizon", "horizon is -5, but a whole number of at least 1 is needed"),
        ({"horizon": '"many"'}, "horizon", "horizon is 'many', but a whole number of at least 1 is needed"),
        ({"horizon": "{a = 1}"}, "horizon", "horizon is {'a': 1}, but a whole number of at least 1 is needed"),
        ({"m": "true"}, "m", "m is True, but a whole number of at least 1 is needed"),
        ({"m": "[1, [2]]"}, "m", "m is [2], but a whole number of at least 1 is needed"),
        ({"runs": "0"}, "runs", "runs is 0"),
        ({"runs": "[1, 2]"}, "runs", "runs is [1, 2], but a whole number of at least 1 is needed"),
        ({"seed": "-1"}, "seed", "seed is -1"),
        ({"seed": "[1]"}, "seed", "seed is [1]"),
        ({"agents": "1", "horizon": "1"}, "horizon", "kzz on a: horizon is 1, but 3 arms and 1 agent need at least"),
        ({"agents": None}, None, "agents is missing"),
        ({"algorithms": '"kz"'}, "algorithms", "algorithm is 'kz' (did you mean 'kzz'?)"),
        ({"algorithms": '["kz"]'}, "algorithms[0]", "algorithm is 'kz' (did you mean 'kzz'?)"),
        (
            {"algorithms": '[{name = "kzz", schedule = "full"}]'},
            "algorithms[0].schedule",
            "schedule is not an option of kzz: its options are balanced",
        ),
        (
            {"algorithms": '["kzz", {schedule = "full"}]'},
            "algorithms[1]",
            "{'schedule': 'full'} is no algorithm: give a name, or {name = ",
        ),
        ({"algorithms": "[3]"}, "algorithms[0]", "3 is no algorithm"),
        (
            {"algorithms": '{name = "collab-top-iid", schedule = "half"}'},
            "algorithms.schedule",
            "schedule is 'half', but",
        ),
        ({"arms__a": "{}"}, "arms.a", "give exactly one of means, dataset and instance: none was given"),
        (
            {"arms__a": '{means = [0.5], dataset = "movielens_like"}'},
            "arms.a",
            "give exactly one of means, dataset and",
        ),
        (
            {"arms__a": '{means = [0.5, 0.6], label = "x"}'},
            "arms.a.label",
            "label is not a key here: the keys are means",
        ),
        ({"arms__a": "{means = [0.9, 1.5]}"}, "arms.a.means", "means[1] is 1.5, but a mean lies in [0, 1]"),
        ({"arms__a": "{means = [0.9, nan]}"}, "arms.a.means", "means[1] is nan"),
        ({"arms__a": '{means = ["x"]}'}, "arms.a.means", "means[0] is 'x', but a number is needed"),
        ({"arms__a": "{means = [true, false]}"}, "arms.a.means", "means[0] is True, but a number is needed"),
        ({"arms__a": "{means = []}"}, "arms.a.means", "means is [], but a file name or a list"),
        ({"arms__a": "{means = [[0.1, 0.2], [0.3]]}"}, "arms.a.means", "means[1] is [0.3], but 2 numbers"),
        ({"arms__a": "{means = [[0.1, 0.2], [0.3, 1.2]]}"}, "arms.a.means", "means[1, 1] is 1.2, but a mean lies in"),
        (
            {"arms__a": '{means = [[0.1, 0.2], [0.3, "x"]]}'},
            "arms.a.means",
            "means[1][1] is 'x', but a number is needed",
        ),
        ({"arms__a": "{means = [[], []]}"}, "arms.a", ""),
        (
            {"arms__a": "{means = [0.9, 0.5], weights = [1, 2]}"},
            "arms.a.weights",
            "weights only applies to arms that differ between agents",
        ),
        (
            {"arms__a": "{means = [[0.9, 0.5], [0.1, 0.2]], weights = [1, 2, 3]}"},
            "arms.a.weights",
            "weights has 3 entries, but there are 2 agents",
        ),
        (
            {"arms__a": "{means = [[0.9, 0.5], [0.1, 0.2]], weights = [1, 0]}"},
            "arms.a.weights",
            "weights[1] is 0.0, but a number above 0 is needed",
        ),
        (
            {"arms__a": '{means = [[0.9, 0.5], [0.1, 0.2]], weights = [1, "x"]}'},
            "arms.a.weights",
            "weights[1] is 'x', but a number is needed",
        ),
        (
            {"arms__a": "{means = [[0.9, 0.5], [0.1, 0.2]], weights = 3}"},
            "arms.a.weights",
            "weights is 3, but one number per agent is needed",
        ),
        ({"arms__a": '{dataset = "imdb"}'}, "arms.a.dataset", "dataset is 'imdb', but these are known: movielens_like"),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = 1}'}, "arms.a", "gap is missing: equal_gaps needs it"),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = 1, gap = 2}'}, "arms.a.gap", "gap is 2, but a gap from"),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = 7, gap = 0.2}'}, "arms.a.m", "m is 7, but 1 <= m <= 3"),
        ({"arms__a": '{instance = "equal_gaps", n = "x", m = 1, gap = 0.1}'}, "arms.a.n", "n is 'x'"),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = 1, gap = "x"}'}, "arms.a.gap", "gap is 'x', but a number"),
        (
            {"arms__a": '{instance = "equal_gaps", n = 4, m = "1", gap = 0.1}'},
            "arms.a.m",
            "m is '1', but a whole number",
        ),
        (
            {"arms__a": '{instance = "geometric", n = 4, best = "x"}'},
            "arms.a.best",
            "best is 'x', but a number is needed",
        ),
        ({"arms__a": '{instance = "arithmetic", n = 4, worst = []}'}, "arms.a.worst", "worst is [], but a number is"),
        (
            {"arms__a": '{instance = "set_disjointness", X = [[1, 0]], delta = "x"}'},
            "arms.a.delta",
            "delta is 'x', but a number is needed",
        ),
        ({"arms__a": '{instance = "set_disjointness", X = [[1, 2]]}'}, "arms.a.X", "X[0, 1] is 2, but 0 or 1"),
        (
            {"arms__a": f'{{instance = "uniform_means", n = {10**30}, seed = 1}}'},
            "arms.a.n",
            f"n is {10**30}, but a whole number of at most 10000000",
        ),
        ({"arms__a": '{dataset = "movielens", path = 3}'}, "arms.a.path", "path is 3, but the name of a file"),
        ({"horizon": f"{10**30}"}, "horizon", f"kzz on a: horizon is {10**30}, but a whole number of at most 33333333"),
        ({"agents": f"{10**30}"}, "agents", f"kzz on a: agents is {10**30}, but a whole number of at most 1000000 is"),
        ({"runs": f"{10**30}"}, "runs", f"runs is {10**30}, but a whole number of at most 1000000000 is needed"),
        (
            {"algorithms": '{name = "kzz", balanced = "no"}'},
            "algorithms.balanced",
            "balanced is 'no', but True or False is needed",
        ),
        ({"algorithms": '[{name = "frugal-top", risk = "no"}]'}, "algorithms[0].risk", "risk is 'no', but a number is"),
        (
            {"algorithms": '{name = "frugal-top-noniid", coarseness = "x"}'},
            "algorithms.coarseness",
            "coarseness is 'x', but a number is needed",
        ),
        (
            {"algorithms": '{name = "collab-top-iid", schedule = ["full"]}'},
            "algorithms.schedule",
            "schedule is ['full'], but",
        ),
        ({"arms__a": '{instance = "one_good_arm", n = 4, gap = 0.1, m = 1}'}, "arms.a.m", "m is not a key here"),
    ],
)
def test_the_error_of_a_malformed_file_names_the_file_and_the_key(write, changes, key, message):
    path = write(text_with(**changes))
    with pytest.raises(ct.FileError) as caught:
        read_study(path)
    prefix = f"{path}: " if key is None else f"{path}: key {key!r}: "
    assert str(caught.value).startswith(f"{prefix}{message}")


def test_settings_that_do_not_fit_the_arms_are_refused(write):
    with pytest.raises(ct.FileError, match=r"study.toml: key 'm': kzz on a: m is 4, but there are only 3 arms"):
        read_study(write(text_with(m="4")))
    with pytest.raises(ct.FileError, match=r"study.toml: key 'algorithms': kzz on a: .* differ from agent to agent"):
        read_study(write(text_with(arms__a="{means = [[0.1, 0.2], [0.3, 0.1]]}")))


def test_files_of_means_and_datasets_are_named(write, tmp_path):
    (tmp_path / "bad.txt").write_text("0.5\n1.5\n")
    with pytest.raises(ct.FileError, match=r"study.toml: key 'arms.a': .*bad.txt, line 2: found '1.5'"):
        read_study(write(text_with(arms__a='{means = "bad.txt"}')))
    with pytest.raises(ct.FileError, match=r"study.toml: key 'arms.a': .*absent.txt: no such file"):
        read_study(write(text_with(arms__a='{means = "absent.txt"}')))
    with pytest.raises(ct.FileError, match=r"study.toml: key 'arms.a': .*absent.zip"):
        read_study(write(text_with(arms__a='{dataset = "movielens", path = "absent.zip"}')))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('horizon = 3\nalgorithms = ["kzz"\nm = 1\n', r": not TOML: .*\(at line 3, column 1\)"),
        ("horizon = 3\nhorizon = 4\n", r": not TOML: .*\(at line 2, column 12\)"),
        ('horizon = "3', r": not TOML: .*\(at end of document\)"),
        (b"m = 1\nname = '\xff'\n", ": not TOML: line 2: byte 0xff is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_toml_is_named_with_its_line(write, text, message):
    path = write(text)
    with pytest.raises(ct.FileError, match=f"^{re.escape(str(path))}{message}$"):
        read_study(path)


def test_a_missing_file_or_a_folder_is_a_clear_error(tmp_path):
    with pytest.raises(ct.FileError, match=r"absent\.toml: no such file"):
        read_study(tmp_path / "absent.toml")
    with pytest.raises(ct.FileError, match="is a directory"):
        read_study(tmp_path)
