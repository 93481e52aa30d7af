"""Arms from an official MovieLens release, as downloaded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from collabtop.arms import BernoulliArms, HeterogeneousArms
from collabtop.datasets.layout import Release, open_release
from collabtop.errors import InputError
from collabtop.validation import require, whole_number

if TYPE_CHECKING:
    from collabtop.datasets.ratings import Totals

_MOST_STARS = 5
_MOST_GROUPS = 10_000


def movielens(path: str | os.PathLike[str], min_ratings: int = 10_000) -> BernoulliArms:
    """The movies of a MovieLens release as arms: a mean is the average rating / 5, a label is the title.

    `path` is the downloaded zip file or the unpacked folder of ml-latest, ml-latest-small, 32m, 25m, 20m, 10m, 1m or
    100k. Nothing is downloaded. Movies with fewer than `min_ratings` ratings are left out; the paper's IID instance
    is ml-25m with at least 10,000 ratings per movie. Needs polars: `pip install 'collabtop[movielens]'`.

    >>> import collabtop as ct
    >>> arms = ct.datasets.movielens("ml-25m.zip")    # doctest: +SKIP
    >>> arms.n                                        # doctest: +SKIP
    588
    """
    whole_number("min_ratings", min_ratings, least=1)
    with open_release(path) as release:
        totals = _totals(release, groups=1)
        keep = totals.counts[:, 0] >= min_ratings
        if not keep.any():
            raise InputError(
                f"min_ratings is {min_ratings}, but the most-rated movie of {release.name} "
                f"has {totals.counts.max()} ratings",
                argument="min_ratings",
            )
        means = totals.sums[keep, 0] / totals.counts[keep, 0] / _MOST_STARS
        return BernoulliArms(means, labels=_labels(release, totals.movies[keep]))


def movielens_groups(
    path: str | os.PathLike[str], groups: int = 10, min_ratings_each: int = 1_000
) -> HeterogeneousArms:
    """The movies of a MovieLens release as non-IID arms, with one agent per group of users.

    User x belongs to group x mod `groups`. A movie is kept if every group has rated it at least `min_ratings_each`
    times; an agent's mean is its group's average rating / 5. Otherwise this works like `movielens`. The paper's
    non-IID instance is ml-25m with 10 groups.

    >>> import collabtop as ct
    >>> arms = ct.datasets.movielens_groups("ml-25m.zip")    # doctest: +SKIP
    >>> arms.agents                                          # doctest: +SKIP
    10
    """
    whole_number("groups", groups, least=1, most=_MOST_GROUPS)
    whole_number("min_ratings_each", min_ratings_each, least=1)
    with open_release(path) as release:
        totals = _totals(release, groups)
        fewest = totals.counts.min(axis=1)
        keep = fewest >= min_ratings_each
        if not keep.any():
            raise InputError(
                f"min_ratings_each is {min_ratings_each}, but no movie of {release.name} has more than "
                f"{fewest.max()} ratings in each of {groups} groups "
                f"(the most-rated movie has {totals.counts.sum(axis=1).max()} in total)",
                argument="min_ratings_each",
            )
        local_means = totals.sums[keep] / totals.counts[keep] / _MOST_STARS
        return HeterogeneousArms(local_means, labels=_labels(release, totals.movies[keep]))


def _totals(release: Release, groups: int) -> Totals:
    require("movielens", "polars", what="reading a MovieLens release")
    from collabtop.datasets.ratings import add_up

    return add_up(release, groups)


def _labels(release: Release, movies: Iterable[int]) -> list[str]:
    """Titles, with the movie's number added where two movies share a title or a movie has none."""
    titles = release.titles()
    named = [(int(movie), titles.get(int(movie), "movie")) for movie in movies]
    uses = Counter(title for _, title in named)
    return [title if uses[title] == 1 and movie in titles else f"{title} [{movie}]" for movie, title in named]
