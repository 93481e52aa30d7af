import numpy as np
import pytest

import collabtop as ct


@pytest.fixture
def read(tmp_path):
    """Write a means file, read it, and return the arms."""

    def write_and_read(content):
        path = tmp_path / "means.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return ct.read_arms(path)

    return write_and_read


def error_after_name(read, content):
    with pytest.raises(ct.FileError) as caught:
        read(content)
    return str(caught.value).split("means.txt", 1)[1]


def test_one_mean_a_line_makes_bernoulli_arms(read):
    arms = read("0.25\n1\n0\n5e-1\n")
    assert isinstance(arms, ct.BernoulliArms)
    assert arms.means.tolist() == [0.25, 1.0, 0.0, 0.5]
    assert arms.labels is None


@pytest.mark.parametrize("separator", [" ", "\t", ",", ", ", "   ", " \t"])
def test_several_columns_make_non_iid_arms_whatever_separates_them(read, separator):
    arms = read(f"0.1{separator}0.2\n0.3{separator}0.4\n")
    assert isinstance(arms, ct.HeterogeneousArms)
    assert arms.means.tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert arms.agents == 2


def test_blank_lines_and_comments_are_left_out(read):
    arms = read("# means\n\n0.1  # the first\n   \n  # more\n0.2\n\n")
    assert arms.means.tolist() == [0.1, 0.2]


@pytest.mark.parametrize("name", ["label", "Name", "TITLE", "arm", "movie"])
def test_a_csv_with_a_header_carries_labels(read, name):
    arms = read(f'{name},mean\n"Godfather, The",0.9\nC# in depth,0.5\n')
    assert arms.labels == ("Godfather, The", "C# in depth")
    assert arms.means.tolist() == [0.9, 0.5]


def test_the_label_column_may_stand_anywhere_and_beside_several_agents(read):
    arms = read("north\tsouth\ttitle\n0.1\t0.2\tHeat (1995)\n0.3\t0.4\tRonin\n")
    assert isinstance(arms, ct.HeterogeneousArms)
    assert arms.labels == ("Heat (1995)", "Ronin")
    assert arms.means.tolist() == [[0.1, 0.2], [0.3, 0.4]]


def test_a_column_called_label_may_hold_numbers(read):
    arms = read("label,mean\n300,0.7\n1984,0.6\n")
    assert arms.labels == ("300", "1984")


def test_an_unnamed_label_column_may_hold_a_few_numbers(read):
    assert read("film,mean\n300,0.7\nHeat,0.6\nRonin,0.5\n").labels == ("300", "Heat", "Ronin")


def test_an_arm_number_beside_a_title_is_set_aside(read):
    arms = read("arm,title,mean\n17,Heat,0.7\n18,Ronin,0.6\n")
    assert arms.labels == ("Heat", "Ronin")
    assert arms.means.tolist() == [0.7, 0.6]


def test_a_header_over_means_alone_is_no_label_column(read):
    assert read("mean\n0.7\n0.6\n").labels is None
    assert read("agent 1,agent 2\n0.7,0.6\n").agents == 2


def test_a_header_may_number_its_agents(read):
    arms = read("title,0,1\nHeat,0.7,0.6\n")
    assert arms.labels == ("Heat",)
    assert arms.agents == 2


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_byte_order_mark_and_any_line_ends_are_fine(read, newline):
    arms = read(b"\xef\xbb\xbf" + newline.join(["title,mean", "Amélie,0.5", ""]).encode())
    assert arms.labels == ("Amélie",)


def test_what_numpy_saves_is_read_back_to_the_last_bit(tmp_path):
    table = np.random.default_rng(1).random((20, 3))
    np.savetxt(tmp_path / "means.txt", table, fmt="%.17g")
    assert np.array_equal(ct.read_arms(tmp_path / "means.txt").means, table)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": the file has no means"),
        ("# nothing\n\n", ": the file has no means"),
        ("label,mean\n", ": no means below the header"),
        ("0.5\nabc\n", ", line 2: found 'abc', but a number is needed"),
        ("O.5\n0.5\n", ", line 1: found 'O.5', but a number is needed"),
        ("0.5\n0_5\n", ", line 2: found '0_5', but a number is needed"),
        ("0.5\n\n# x\n1.5\n", ", line 4: found '1.5', but a mean lies in [0, 1]"),
        ("-0.1\n", ", line 1: found '-0.1', but a mean lies in [0, 1]"),
        ("0.5\nNaN\n", ", line 2: found 'NaN', but a mean lies in [0, 1]"),
        ("0.5\ninf\n", ", line 2: found 'inf', but a mean lies in [0, 1]"),
        ("0.1 0.2\n0.3\n", ", line 2: 1 column, but line 1 has 2"),
        ("0.1\n0.3 0.4 0.5\n", ", line 2: 3 columns, but line 1 has 1"),
        ("title,mean\nHeat,0.5,0.6\n", ", line 2: 3 columns, but line 1 has 2"),
        ("title,mean\nHeat,\n", ", line 2, column 2 (mean): found '', but a number is needed"),
        ("0.1,0.2\n0.3,x\n", ", line 2, column 2: found 'x', but a number is needed"),
        ("title,mean\nHeat,0.5\nRonin,7\n", ", line 3, column 2 (mean): found '7', but a mean lies in [0, 1]"),
        ("title,genre,mean\nHeat,crime,0.5\n", ", line 2, column 2 (genre): found 'crime', but a number is needed"),
        ('title,mean\n"Heat,0.5\n', ", line 2: '\"Heat,0.5' cannot be split into columns (unexpected end of data)"),
        ("title\nHeat\n", ", line 2: labels, but no column of means"),
        (b"0.5\n0.\xff\n", ", line 2: byte 0xff is not UTF-8 text"),
        ("0.5\n0.6\n".encode("utf-16"), ", line 1: byte 0xff is not UTF-8 text"),
    ],
)
def test_a_malformed_file_is_refused_with_the_line_and_what_was_found(read, content, message):
    assert error_after_name(read, content) == message


def test_an_arm_is_not_mistaken_for_a_header(read):
    assert error_after_name(read, "Heat,0.85\nRonin,0.5\n") == (
        ", line 1: 'Heat' beside 0.85 may be a header or an arm; begin the file with a header such as label,mean"
    )


def test_a_missing_file_and_a_directory_are_refused_by_name(tmp_path):
    with pytest.raises(ct.FileError, match=r"absent\.txt: no such file"):
        ct.read_arms(tmp_path / "absent.txt")
    with pytest.raises(ct.FileError, match="is a directory"):
        ct.read_arms(tmp_path)
    with pytest.raises(ct.FileError, match="null byte"):
        ct.read_arms("a\0b")


def test_a_file_error_is_an_input_error_and_a_value_error():
    assert issubclass(ct.FileError, ct.InputError)
    assert issubclass(ct.FileError, ValueError)
