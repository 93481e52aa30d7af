"""Studies from TOML files, and what a malformed one is told."""

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
    algorithms = ["kzz", ct.CollabTopIID(schedule="full")]
    by_hand = ct.Study(arms=arms, algorithms=algorithms, m=[1, 2], agents=3, horizon=[400, 800], runs=7, seed=5)
    assert read_study(write(GOOD)).fingerprint == by_hand.fingerprint


def test_single_values_need_no_brackets_and_defaults_are_those_of_a_study(write):
    study = read_study(write('algorithms = "kzz"\nhorizon = 100\nagents = 2\narms.a = {means = [0.9, 0.1]}'))
    assert [(point.m, point.agents, point.runs, point.seed) for point in study.points] == [(1, 2, 100, 0)]


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
    ("changes", "message"),
    [
        (
            {"colour": "1"},
            "key 'colour' is not known here: arms, algorithms, m, agents, horizon, runs, seed may be given",
        ),
        ({"algorithms": None}, "algorithms is missing"),
        ({"horizon": None}, "horizon is missing"),
        ({"arms__a": None}, "arms is missing"),
        ({"arms__a": None, "arms": "{}"}, "arms is empty"),
        ({"arms__a": None, "arms": "3"}, "arms is 3, but tables are needed"),
        ({"arms__a": "0.5"}, "arms.a is 0.5, but a table"),
        ({"algorithms": "[]"}, "algorithms is empty"),
        ({"m": "[]"}, "m is empty"),
        ({"horizon": "[]"}, "horizon is empty"),
        ({"horizon": "[400, 1.5]"}, "horizon is 1.5, but a whole number is needed"),
        ({"horizon": '"many"'}, "horizon is 'many', but a whole number is needed"),
        ({"m": "true"}, "m is True, but a whole number is needed"),
        ({"runs": "0"}, "runs is 0"),
        ({"runs": "[1, 2]"}, r"runs is \[1, 2\], but a whole number is needed"),
        ({"seed": "-1"}, "seed is -1"),
        ({"horizon": "1", "agents": "1"}, "kzz on a: horizon is 1, but 3 arms and 1 agents need at least"),
        ({"m": "4"}, "m is 4, but there are only 3 arms"),
        ({"agents": None}, "agents is missing"),
        ({"algorithms": '["kz"]'}, r"algorithms\[0\]: algorithm is 'kz' \(did you mean 'kzz'\?\)"),
        (
            {"algorithms": '[{name = "kzz", schedule = "full"}]'},
            r"algorithms\[0\]: option 'schedule' is not one of kzz's",
        ),
        ({"algorithms": '["kzz", {schedule = "full"}]'}, r"algorithms\[1\] is .* but a name is needed"),
        ({"algorithms": "[3]"}, r"algorithms\[0\] is 3, but a name is needed"),
        ({"algorithms": '{name = "collab-top-iid", schedule = "half"}'}, r"algorithms\[0\]: schedule is 'half'"),
        ({"arms__a": "{}"}, "arms.a: exactly one of means, dataset and instance is needed, found none"),
        ({"arms__a": '{means = [0.5], dataset = "movielens_like"}'}, "found means and dataset"),
        ({"arms__a": '{means = [0.5, 0.6], label = "x"}'}, "arms.a: key 'arms.a.label' is not known here"),
        ({"arms__a": "{means = [0.9, 1.5]}"}, r"arms.a: means\[1\] is 1.5, but a mean lies in \[0, 1\]"),
        ({"arms__a": "{means = [0.9, nan]}"}, r"arms.a: means\[1\] is nan"),
        ({"arms__a": '{means = ["x"]}'}, "arms.a: means must be numbers"),
        ({"arms__a": "{means = []}"}, r"arms.a: means is \[\], but a file name or a list"),
        ({"arms__a": "{means = [[0.1, 0.2], [0.3]]}"}, "arms.a: local_means must be numbers"),
        ({"arms__a": '{means = "absent.txt"}'}, "arms.a: .*absent.txt: no such file"),
        ({"arms__a": '{dataset = "imdb"}'}, "arms.a: dataset is 'imdb', but these are known: movielens_like"),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = 1}'}, "arms.a: gap is missing: equal_gaps needs it"),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = 1, gap = 2}'}, "arms.a: gap is 2, but a gap from"),
        ({"arms__a": '{instance = "equal_gaps", n = "x", m = 1, gap = 0.1}'}, "arms.a: n is 'x'"),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = 1, gap = "x"}'}, "arms.a: "),
        ({"arms__a": '{instance = "one_good_arm", n = 4, gap = 0.1, m = 1}'}, "key 'arms.a.m' is not known here"),
        ({"arms__a": '{dataset = "movielens", path = "absent.zip"}'}, "arms.a: .*absent.zip"),
        ({"arms__a": "{means = [[0.1, 0.2], [0.3, 0.1]]}"}, "differ from agent to agent"),
    ],
)
def test_a_malformed_file_is_told_what_is_wrong_with_which_key(write, changes, message):
    path = write(text_with(**changes))
    with pytest.raises(ct.FileError, match=message) as error:
        read_study(path)
    assert str(error.value).startswith(f"{path}: ")


def test_a_bad_line_of_a_file_of_means_is_named(write, tmp_path):
    (tmp_path / "bad.txt").write_text("0.5\n1.5\n")
    with pytest.raises(ct.FileError, match=r"study.toml: arms.a: .*bad.txt, line 2: found '1.5'"):
        read_study(write(text_with(arms__a='{means = "bad.txt"}')))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('horizon = 3\nalgorithms = ["kzz"\nm = 1\n', ", line 3: not TOML: "),
        ("horizon = 3\nhorizon = 4\n", ", line 2: not TOML: Cannot overwrite a value"),
        ('horizon = "3', ", at its end: not TOML: "),
        ("horizon\n", ", line 1: not TOML: "),
        (b"m = 1\nname = '\xff'\n", ", line 2: byte 0xff is not UTF-8 text"),
    ],
)
def test_what_is_no_toml_is_named_with_its_line(write, text, place):
    path = write(text)
    with pytest.raises(ct.FileError) as error:
        read_study(path)
    assert str(error.value).startswith(f"{path}{place}")


def test_a_missing_file_or_a_folder_is_a_clear_error(tmp_path):
    with pytest.raises(ct.FileError, match=r"absent\.toml: no such file"):
        read_study(tmp_path / "absent.toml")
    with pytest.raises(ct.FileError, match="is a directory"):
        read_study(tmp_path)
