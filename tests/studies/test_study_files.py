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
        ({"agents": "1", "horizon": "1"}, "kzz on a: horizon is 1, but 3 arms and 1 agents need at least"),
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
        ({"arms__a": '{means = ["x"]}'}, r"arms.a: means\[0\] is 'x', but a number is needed"),
        ({"arms__a": "{means = [true, false]}"}, r"arms.a: means\[0\] is True, but a number is needed"),
        ({"arms__a": "{means = []}"}, r"arms.a: means is \[\], but a file name or a list"),
        ({"arms__a": "{means = [[0.1, 0.2], [0.3]]}"}, r"arms.a: means\[1\] is \[0.3\], but 2 numbers"),
        ({"arms__a": "{means = [[0.1, 0.2], [0.3, 1.2]]}"}, r"arms.a: means\[1, 1\] is 1.2, but a mean lies in"),
        ({"arms__a": "{means = [[], []]}"}, "arms.a: "),
        ({"arms__a": '{means = "absent.txt"}'}, "arms.a: .*absent.txt: no such file"),
        ({"arms__a": '{dataset = "imdb"}'}, "arms.a: dataset is 'imdb', but these are known: movielens_like"),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = 1}'}, "arms.a: gap is missing: equal_gaps needs it"),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = 1, gap = 2}'}, "arms.a: gap is 2, but a gap from"),
        ({"arms__a": '{instance = "equal_gaps", n = "x", m = 1, gap = 0.1}'}, "arms.a: n is 'x'"),
        (
            {"arms__a": '{instance = "equal_gaps", n = 4, m = 1, gap = "x"}'},
            "arms.a: gap is 'x', but a number is needed",
        ),
        ({"arms__a": '{instance = "equal_gaps", n = 4, m = "1", gap = 0.1}'}, "arms.a: m is '1', but a whole number"),
        ({"arms__a": '{instance = "geometric", n = 4, best = "x"}'}, "arms.a: best is 'x', but a number is needed"),
        ({"arms__a": '{instance = "arithmetic", n = 4, worst = []}'}, r"arms.a: worst is \[\], but a number is needed"),
        (
            {"arms__a": '{instance = "set_disjointness", X = [[1, 0]], delta = "x"}'},
            "arms.a: delta is 'x', but a number is needed",
        ),
        (
            {"arms__a": f'{{instance = "uniform_means", n = {10**30}, seed = 1}}'},
            "n is 10+, but .* of at most 10000000",
        ),
        ({"arms__a": '{dataset = "movielens", path = 3}'}, "arms.a: path is 3, but the name of a file"),
        ({"horizon": f"{10**30}"}, "kzz on a: horizon is 10+, but a whole number of at most 333333333333333 is needed"),
        ({"agents": f"{10**30}"}, "kzz on a: agents is 10+, but a whole number of at most 1000000 is needed"),
        ({"runs": f"{10**30}"}, "runs is 10+, but a whole number of at most 1000000000 is needed"),
        (
            {"algorithms": '{name = "kzz", balanced = "no"}'},
            r"algorithms\[0\]: balanced is 'no', but True or False is needed",
        ),
        (
            {"algorithms": '[{name = "frugal-top", risk = "no"}]'},
            r"algorithms\[0\]: risk is 'no', but a number is needed",
        ),
        ({"algorithms": '{name = "frugal-top-noniid", coarseness = "x"}'}, "coarseness is 'x', but a number is needed"),
        ({"algorithms": '{name = "collab-top-iid", schedule = ["full"]}'}, r"schedule is \['full'\], but"),
        ({"arms__a": '{instance = "one_good_arm", n = 4, gap = 0.1, m = 1}'}, "key 'arms.a.m' is not known here"),
        ({"arms__a": '{dataset = "movielens", path = "absent.zip"}'}, "arms.a: .*absent.zip"),
    ],
)
def test_a_malformed_file_is_told_what_is_wrong_with_which_key_and_line(write, changes, message):
    text = text_with(**changes)
    path = write(text)
    with pytest.raises(ct.FileError, match=message) as error:
        read_study(path)
    (changed,) = (key.replace("__", ".") for key, value in [*changes.items()][-1:])
    keys = [line.partition(" = ")[0] for line in text.splitlines()]
    if changed in keys and "missing" not in message:
        assert str(error.value).startswith(f"{path}, line {keys.index(changed) + 1}: ")
    else:
        assert str(error.value).startswith(f"{path}: ") or "gap is missing" in message


def test_an_algorithm_that_does_not_fit_the_arms_is_told_at_the_algorithms(write):
    path = write(text_with(arms__a="{means = [[0.1, 0.2], [0.3, 0.1]]}"))
    with pytest.raises(ct.FileError, match=r"study.toml, line 1: kzz on a: .* differ from agent to agent"):
        read_study(path)


WITH_LINES = """# what is wrong is told with its line
algorithms = [
    "uniform",  # one
    {name = "collab-top-noniid", schedule = "full"},
]
horizon = [
    400,
    800,
]
agents = 3

[arms.listed]
means = [
    0.9,
    0.5,
    0.1,
]

[arms.table]
means = [
    [0.9, 0.8],
    [0.1, 0.2],
]

[arms.hard]
instance = "equal_gaps"
n = 16

m = 2
gap = 0.25
"""


@pytest.mark.parametrize(
    ("right", "wrong", "line", "message"),
    [
        ('"uniform",', '"unifrom",', 3, "algorithms[0]: algorithm is 'unifrom' (did you mean 'uniform'?)"),
        ('"full"', '"half"', 4, "algorithms[1]: schedule is 'half'"),
        ("    800", "    8.5", 8, "horizon is 8.5"),
        ("    800", "    1", 8, "uniform on listed: horizon is 1, but 3 arms and 3 agents need at least"),
        ("agents = 3", "agents = -3", 10, "agents is -3"),
        ("agents = 3", "crew = 3", 10, "key 'crew' is not known here"),
        ("    0.5", "    1.5", 15, "arms.listed: means[1] is 1.5"),
        ("0.1, 0.2", '0.1, "x"', 22, "arms.table: means[1, 1] is 'x'"),
        ("n = 16", "n = 16.0", 27, "arms.hard: n is 16.0"),
        ("m = 2\ngap", "m = 20\ngap", 29, "arms.hard: m is 20"),
        ("gap = 0.25", "hole = 0.25", 30, "arms.hard: key 'arms.hard.hole' is not known here"),
        ("gap = 0.25", "", 25, "arms.hard: gap is missing"),
    ],
)
def test_the_line_is_that_of_the_value_in_a_table_and_in_a_list_too(write, right, wrong, line, message):
    assert len(read_study(write(WITH_LINES)).points) == 12
    assert right in WITH_LINES
    path = write(WITH_LINES.replace(right, wrong).replace("\n", "\r\n"))
    with pytest.raises(ct.FileError) as error:
        read_study(path)
    assert str(error.value).startswith(f"{path}, line {line}: {message}")


def test_a_long_list_of_means_is_searched_quickly(write):
    means = "\n".join("    0.5," for _ in range(3_000))
    path = write(f'algorithms = "kzz"\nhorizon = 9_000\nagents = 2\narms.a = {{means = [\n{means}\n    7,\n]}}\n')
    with pytest.raises(ct.FileError, match=r"study.toml, line 3005: arms.a: means\[3000\] is 7"):
        read_study(path)


def test_a_bad_line_of_a_file_of_means_is_named(write, tmp_path):
    (tmp_path / "bad.txt").write_text("0.5\n1.5\n")
    with pytest.raises(ct.FileError, match=r"study.toml, line 4: arms.a: .*bad.txt, line 2: found '1.5'"):
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
