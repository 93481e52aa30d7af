import io
import os
import random
import re
import resource
import sys
import zipfile
from collections import defaultdict
from pathlib import PurePosixPath

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collabtop.datasets import layout as layouts
from collabtop.datasets import movielens, movielens_groups, ratings
from collabtop.errors import FileError, InputError
from tests.support.untyped import untyped

TITLES = {
    1: "Toy Story (1995)",
    2: "American President, The (1995)",
    47: "Misérables, Les (1995)",
    900: 'Say "Hi"',
}


def some_ratings(users=40, halves=False, seed=1):
    """Rows (user, movie, stars, time): movie 1 is rated by every user, each later movie by fewer."""
    rng = random.Random(seed)
    stars = [s / 2 for s in range(1, 11)] if halves else [1, 2, 3, 4, 5]
    rows = []
    for position, movie in enumerate(TITLES):
        rows += [(user, movie, rng.choice(stars), 1_000_000 + user) for user in range(1, users - 8 * position + 1)]
    return sorted(rows)


def as_csv(rows, titles=TITLES):
    quoted = {movie: '"' + title.replace('"', '""') + '"' for movie, title in titles.items()}
    return {
        "ratings.csv": "userId,movieId,rating,timestamp\n" + lines(rows, ",", float),
        "movies.csv": "movieId,title,genres\n" + "".join(f"{m},{t},Drama|War\n" for m, t in quoted.items()),
    }


def as_dat(rows, titles=TITLES):
    movies = "".join(f"{movie}::{title}::Drama|War\n" for movie, title in titles.items())
    return {"ratings.dat": lines(rows, "::"), "movies.dat": movies}


def as_u_data(rows, titles=TITLES):
    movies = "".join(f"{movie}|{title}|01-Jan-1995||http://x|0|1|0\n" for movie, title in titles.items())
    return {"u.data": lines(rows, "\t"), "u.item": movies}


def lines(rows, separator, rating=lambda stars: f"{stars:g}"):
    return "".join(separator.join(map(str, (u, m, rating(r), t))) + "\n" for u, m, r, t in rows)


OFFICIAL = {
    "ml-25m": (as_csv, "utf-8", True),
    "ml-latest-small": (as_csv, "utf-8", True),
    "ml-1m": (as_dat, "latin-1", False),
    "ml-10M100K": (as_dat, "utf-8", True),
    "ml-100k": (as_u_data, "latin-1", False),
}


def write_folder(path, files, encoding="utf-8"):
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name).write_bytes(text.encode(encoding))
    return path


def write_zip(path, files, encoding="utf-8", folder="ml-25m/"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(folder + "README.txt", "Summary")
        for name, text in files.items():
            archive.writestr(folder + name, text.encode(encoding))
    return path


def expected(rows, groups=1):
    """The average rating / 5 and the number of ratings by movie and group, computed the slow way."""
    stars = defaultdict(lambda: [[] for _ in range(groups)])
    for user, movie, rating, _ in rows:
        stars[movie][user % groups].append(rating)
    return {m: [(np.mean(g) / 5 if g else None, len(g)) for g in by] for m, by in sorted(stars.items())}


@pytest.mark.parametrize("packed", [True, False], ids=["zip", "folder"])
@pytest.mark.parametrize("name", OFFICIAL)
def test_every_official_release_is_read_with_its_titles(tmp_path, name, packed):
    layout, encoding, halves = OFFICIAL[name]
    rows = some_ratings(halves=halves)
    if packed:
        path = write_zip(tmp_path / f"{name}.zip", layout(rows), encoding, folder=f"{name}/")
    else:
        path = write_folder(tmp_path / name, layout(rows), encoding)
    arms = movielens(path, min_ratings=20)
    assert arms.labels == ("Toy Story (1995)", "American President, The (1995)", "Misérables, Les (1995)")
    assert arms.means == pytest.approx([expected(rows)[movie][0][0] for movie in (1, 2, 47)])


@pytest.mark.parametrize("name", OFFICIAL)
def test_groups_are_users_modulo_their_number(tmp_path, name):
    layout, encoding, halves = OFFICIAL[name]
    rows = some_ratings(halves=halves)
    arms = movielens_groups(write_folder(tmp_path, layout(rows), encoding), groups=3, min_ratings_each=8)
    kept = {m: by for m, by in expected(rows, 3).items() if min(count for _, count in by) >= 8}
    assert arms.agents == 3
    assert arms.labels == tuple(TITLES[movie] for movie in kept)
    assert arms.means == pytest.approx(np.array([[mean for mean, _ in by] for by in kept.values()]))


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_the_size_of_blocks_changes_nothing(tmp_path, monkeypatch, block):
    path = write_zip(tmp_path / "ml-10m.zip", as_dat(some_ratings(halves=True)))
    whole = movielens_groups(path, groups=2, min_ratings_each=1)
    monkeypatch.setattr(ratings, "_BLOCK", block)
    parts = movielens_groups(path, groups=2, min_ratings_each=1)
    assert np.array_equal(whole.means, parts.means)


rows_of_any_kind = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 6), st.integers(1, 10).map(lambda s: s / 2), st.just(1)),
    min_size=1,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(rows_of_any_kind, st.sampled_from([as_csv, as_dat, as_u_data]))
def test_means_are_the_plain_averages_for_any_ratings(tmp_path, rows, layout):
    for old in tmp_path.glob("*"):
        old.unlink()
    arms = movielens(write_folder(tmp_path, layout(rows)), min_ratings=1)
    assert arms.means == pytest.approx([by[0][0] for by in expected(rows).values()])


def test_windows_line_ends_a_byte_order_mark_and_empty_lines_at_the_end_are_accepted(tmp_path):
    files = as_csv(some_ratings())
    plain = movielens(write_folder(tmp_path / "plain", files), min_ratings=1)
    odd = {name: "\ufeff" + text.replace("\n", "\r\n") + "\r\n\r\n" for name, text in files.items()}
    assert np.array_equal(movielens(write_folder(tmp_path / "odd", odd), min_ratings=1).means, plain.means)


def test_a_folder_around_the_release_or_the_ratings_file_can_be_given_too(tmp_path):
    inner = write_folder(tmp_path / "download" / "ml-1m", as_dat(some_ratings()))
    around = movielens(tmp_path / "download", min_ratings=1)
    itself = movielens(str(inner / "ratings.dat"), min_ratings=1)
    assert around.labels == itself.labels == tuple(TITLES.values())


def test_movies_that_share_a_title_or_have_none_are_labelled_with_their_number(tmp_path):
    titles = {1: "War (2005)", 2: "War (2005)", 47: "Peace"}
    arms = movielens(write_folder(tmp_path, as_csv(some_ratings(), titles)), min_ratings=1)
    assert arms.labels == ("War (2005) [1]", "War (2005) [2]", "Peace", "movie [900]")


def test_movies_without_a_titles_file_are_labelled_with_their_number(tmp_path):
    files = as_csv(some_ratings())
    del files["movies.csv"]
    assert movielens(write_folder(tmp_path, files), min_ratings=40).labels == ("movie [1]",)


def test_a_missing_release_says_where_to_get_it_and_its_licence_in_one_line(tmp_path):
    with pytest.raises(FileError) as caught:
        movielens(tmp_path / "ml-25m.zip")
    message = str(caught.value)
    assert "ml-25m.zip" in message
    assert "grouplens.org/datasets/movielens" in message
    assert "licence" in message
    assert "\n" not in message


def test_a_missing_polars_is_one_line_that_names_the_extra(tmp_path, monkeypatch):
    path = write_folder(tmp_path, as_csv(some_ratings()))
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.delitem(sys.modules, "collabtop.datasets.ratings")
    with pytest.raises(InputError, match=r"^.*needs polars, .*: pip install 'collabtop\[movielens\]'$"):
        movielens(path)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.99])
def test_a_truncated_zip_is_named_in_the_error(tmp_path, share):
    path = write_zip(tmp_path / "ml-25m.zip", as_csv(some_ratings()))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(FileError, match=r"ml-25m\.zip: the zip file is truncated or damaged"):
        movielens(path)


def test_a_zip_damaged_inside_the_ratings_is_named_in_the_error(tmp_path):
    path = write_zip(tmp_path / "ml-25m.zip", as_csv(some_ratings(users=400)))
    damaged = bytearray(path.read_bytes())
    middle = damaged.index(b"ratings.csv") + 200
    damaged[middle : middle + 20] = bytes(20)
    path.write_bytes(damaged)
    with pytest.raises(FileError, match=r"ml-25m\.zip"):
        movielens(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(st.data())
def test_no_damage_to_a_zip_gives_anything_but_our_own_errors(tmp_path, data):
    buffer = io.BytesIO()
    write_zip(buffer, as_csv(some_ratings()))
    damaged = bytearray(buffer.getvalue())
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "x.zip").write_bytes(damaged)
    try:
        movielens(tmp_path / "x.zip", min_ratings=1)
    except InputError as error:
        assert "x.zip" in str(error)  # noqa: PT017


@pytest.mark.parametrize("packed", [True, False], ids=["zip", "folder"])
def test_an_error_lists_the_files_that_a_release_needs(tmp_path, packed):
    files = {"movies.csv": "movieId,title,genres\n"}
    path = write_zip(tmp_path / "x.zip", files) if packed else write_folder(tmp_path / "x", files)
    with pytest.raises(FileError, match=r"contains none of ratings\.csv, ratings\.dat, u\.data"):
        movielens(path)


def test_ratings_that_cannot_be_opened_are_named(tmp_path):
    (tmp_path / "u.data").mkdir()
    with pytest.raises(FileError, match=r"cannot be read: .*u\.data"):
        movielens(tmp_path)


def test_two_releases_in_one_folder_are_refused(tmp_path):
    write_folder(tmp_path / "ml-1m", as_dat(some_ratings()))
    write_folder(tmp_path / "ml-100k", as_u_data(some_ratings()))
    with pytest.raises(FileError, match=r"more than one .*ml-1m/ratings\.dat, ml-100k/u\.data"):
        movielens(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,2,abc,4", "rating is 'abc', but a number from 0.5 to 5 is needed"),
        ("1,2,nan,4", "rating is 'nan'"),
        ("1,2,5.5,4", "rating is '5.5'"),
        ("1,2,0.0,4", "rating is '0.0'"),
        ("1,2,-3,4", "rating is '-3'"),
        ("1,2,,4", "rating is ''"),
        ("1,2,3.0", "found {row!r}, expected a user, a movie, a rating and a time"),
        ("1,2,3.0,4,5", "found {row!r}, expected"),
        ("", "found ''"),
        ("x,2,3.0,4", "user is 'x', but a whole number is needed"),
        ("1,-2,3.0,4", "movie is '-2'"),
        ("1,99999999999,3.0,4", "movie is '99999999999'"),
        ('1,"2",3.0,4', "movie is '\"2\"'"),
        ("1,2,3.0,", "time is ''"),
    ],
)
@pytest.mark.parametrize("separator", [",", "::", "\t"], ids=["csv", "dat", "u.data"])
def test_a_bad_row_is_named_with_file_line_and_what_was_found(tmp_path, monkeypatch, separator, row, message):
    monkeypatch.setattr(ratings, "_BLOCK", 100)  # lines are counted across blocks
    layout = {",": as_csv, "::": as_dat, "\t": as_u_data}[separator]
    files = layout(some_ratings())
    name = next(iter(files))
    good = files[name].splitlines()
    row = row.replace(",", separator)
    files[name] = "\n".join([*good[:70], row, *good[70:]]) + "\n"
    with pytest.raises(FileError) as caught:
        movielens(write_zip(tmp_path / "r.zip", files), min_ratings=1)
    assert f"{name}, line 71: {message.format(row=row)}" in str(caught.value)


def test_an_empty_line_is_noticed_wherever_a_block_ends(tmp_path, monkeypatch):
    path = write_folder(tmp_path, {"u.data": "1\t2\t3\t4\n5\t6\t1\t8\n\n9\t1\t2\t3\n"})
    for block in range(1, 30):
        monkeypatch.setattr(ratings, "_BLOCK", block)
        with pytest.raises(FileError, match="line 3: found ''"):
            movielens(path)


def test_a_ratings_file_cut_in_the_middle_of_a_row_is_noticed(tmp_path):
    files = as_csv(some_ratings())
    files["ratings.csv"] = files["ratings.csv"][: files["ratings.csv"].rindex(",")]
    with pytest.raises(FileError, match=r"ratings\.csv, line \d+: found"):
        movielens(write_folder(tmp_path, files), min_ratings=1)


def test_a_different_header_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"line 1: found 'user,movie', expected 'userId,movieId"):
        movielens(write_folder(tmp_path, {"ratings.csv": "user,movie\n1,2\n"}))


@pytest.mark.parametrize("text", ["userId,movieId,rating,timestamp\n", "userId,movieId,rating,timestamp\n\n\n"])
def test_a_file_without_a_single_rating_is_refused(tmp_path, text):
    with pytest.raises(FileError, match=r"ratings\.csv contains no ratings"):
        movielens(write_folder(tmp_path, {"ratings.csv": text}))


@pytest.mark.parametrize(
    ("layout", "name", "text"),
    [
        (as_csv, "movies.csv", "movieId,title,genres\n1,Heat,Drama\nno number,Heat,Drama\n"),
        (as_csv, "movies.csv", 'movieId,title,genres\n1,Heat,Drama\n2,"Heat"x,Drama\n'),
        (as_dat, "movies.dat", "1::Heat::Drama\n2::Heat::Drama\n\n3\n"),
        (as_u_data, "u.item", "1|Heat|\n|Heat|\n"),
    ],
)
def test_a_bad_row_of_titles_is_named_with_file_and_line(tmp_path, layout, name, text):
    files = layout(some_ratings()) | {name: text}
    line = len(text.splitlines())
    with pytest.raises(FileError, match=rf"{name}, line {line}: "):
        movielens(write_folder(tmp_path, files), min_ratings=1)


def test_when_no_movie_is_left_the_error_gives_the_ratings_of_the_most_rated_one(tmp_path):
    path = write_folder(tmp_path, as_csv(some_ratings(users=40)))
    with pytest.raises(InputError, match=r"min_ratings is 10000, but the most-rated movie .* has 40 ratings"):
        movielens(path)
    with pytest.raises(InputError, match=r"more than 4 ratings in each of 10 groups .* has 40 in total"):
        movielens_groups(path)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda path: movielens(path, min_ratings=0), "min_ratings is 0, but a whole number of at least 1"),
        (lambda path: movielens(path, min_ratings=untyped(1.5)), r"min_ratings is 1\.5"),
        (lambda path: movielens_groups(path, groups=0), "groups is 0"),
        (lambda path: movielens_groups(path, min_ratings_each=-1), "min_ratings_each is -1"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_read(tmp_path, call, message):
    with pytest.raises(InputError, match=message):
        call(tmp_path / "nowhere")


def test_more_groups_than_users_is_reported_as_too_few_ratings(tmp_path):
    path = write_folder(tmp_path, as_csv(some_ratings(users=40)))
    with pytest.raises(InputError, match=r"more than 0 ratings in each of 100 groups"):
        movielens_groups(path, groups=100, min_ratings_each=1)


def test_an_encrypted_or_unknown_zip_member_is_named(tmp_path):
    path = write_zip(tmp_path / "ml-25m.zip", as_csv(some_ratings()))
    locked = bytearray(path.read_bytes())
    for start in (
        locked.index(b"PK\x03\x04", 40) + 6,
        locked.index(b"PK\x01\x02", locked.index(b"PK\x01\x02") + 4) + 8,
    ):
        locked[start] |= 1
    path.write_bytes(locked)
    with pytest.raises(FileError, match=r"ml-25m\.zip: ml-25m/ratings\.csv cannot be unpacked: .*encrypted"):
        movielens(path)


def bomb(path, name, data, times, method=zipfile.ZIP_DEFLATED, start=b""):
    """A zip file with a member that repeats `data`; written in pieces, so that the test itself needs little memory."""
    with zipfile.ZipFile(path, "w", method) as archive:
        if name != "ratings.csv":
            archive.writestr("ratings.csv", as_csv(some_ratings())["ratings.csv"])
        with archive.open(name, "w", force_zip64=True) as member:
            member.write(start)
            for _ in range(times):
                member.write(data)
    return path


HEADER = b"userId,movieId,rating,timestamp\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start", "data", "message"),
    [
        ("ratings.csv", HEADER, b"1", "a line, with the empty lines after it, has more than 65,536 bytes"),
        ("ratings.csv", HEADER, b"\n", "a line, with the empty lines after it, has more than 65,536 bytes"),
        ("ratings.csv", b"", b"u", "line 1: found 'uuu"),
        ("movies.csv", b"", b"\n", f"has {300 << 20:,} bytes, but a release has at most {layouts.LARGEST_TITLES:,}"),
    ],
    ids=["one endless line", "empty lines", "endless header", "titles"],
)
def test_a_small_zip_file_that_unpacks_to_much_is_refused_with_little_memory(tmp_path, name, start, data, message):
    path = bomb(tmp_path / "ml.zip", name, data * (1 << 20), 300, start=start)
    assert path.stat().st_size < 1 << 20
    ratings._read_block(b"1,1,5,1\n", layouts.Release(path, layouts._LAYOUTS[0], PurePosixPath()), 1)  # starts polars
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(FileError, match=re.escape(message)):
        movielens(path, min_ratings=1)
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 150 << 20


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_python_unpacks_without_a_limit_is_refused(tmp_path, method):
    path = bomb(tmp_path / "ml.zip", "ratings.csv", b"1", 1, method)
    with pytest.raises(FileError, match="cannot be unpacked: it is compressed, but not with deflate"):
        movielens(path)


def test_a_file_of_ratings_beyond_the_limit_is_refused(tmp_path):
    path = write_folder(tmp_path, as_csv(some_ratings()))
    os.truncate(path / "ratings.csv", layouts.LARGEST_RATINGS + 1)  # sparse
    with pytest.raises(FileError, match="has 17,179,869,185 bytes, but a release has at most 17,179,869,184"):
        movielens(path)


def test_more_movies_than_the_limit_are_refused(tmp_path, monkeypatch):
    rows = [(1, movie, 5, 1) for movie in range(1, 4)]
    path = write_folder(tmp_path, as_csv(rows))
    monkeypatch.setattr(ratings, "MAX_MOVIES", 3)
    assert movielens(path, min_ratings=1).n == 3
    monkeypatch.setattr(ratings, "MAX_MOVIES", 2)
    with pytest.raises(FileError, match="has more than 2 movies"):
        movielens(path, min_ratings=1)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "ratings.csv")
    os.mkfifo(tmp_path / "ml.zip")
    for path in (tmp_path, tmp_path / "ml.zip"):
        with pytest.raises(FileError, match="Not a regular file"):
            movielens(path)
