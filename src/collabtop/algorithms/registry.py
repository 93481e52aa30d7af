"""The algorithms, by name."""

import difflib
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.batched_sar import BatchedSAR
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.algorithms.confident_top import ConfidentTop, ConfidentTopNonIID
from collabtop.algorithms.fed_elim import FedElim
from collabtop.algorithms.frugal_top import FrugalTop
from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID
from collabtop.algorithms.hkk import HKK
from collabtop.algorithms.kl_lucb import KLLUCB
from collabtop.algorithms.kzz import KZZ
from collabtop.algorithms.nsar import NSAR
from collabtop.algorithms.paired_top import PairedTop
from collabtop.algorithms.robust_top import RobustTop
from collabtop.algorithms.sar import SAR
from collabtop.algorithms.sequential_halving import SequentialHalving
from collabtop.algorithms.tzz import TZZ
from collabtop.algorithms.uniform import Uniform
from collabtop.errors import InputError, UnknownAlgorithmError

_catalogue: dict[str, Callable[..., Algorithm]] = {
    "frugal-top": FrugalTop,
    "frugal-top-noniid": FrugalTopNonIID,
    "robust-top": RobustTop,
    "paired-top": PairedTop,
    "confident-top": ConfidentTop,
    "confident-top-noniid": ConfidentTopNonIID,
    "collab-top-iid": CollabTopIID,
    "collab-top-noniid": CollabTopNonIID,
    "kzz": KZZ,
    "kzz-balanced": partial(KZZ, balanced=True),
    "batched-sar": BatchedSAR,
    "tzz": TZZ,
    "hkk": HKK,
    "uniform": Uniform,
    "sar": SAR,
    "nsar": NSAR,
    "sequential-halving": SequentialHalving,
    "kl-lucb": KLLUCB,
    "fed-elim": FedElim,
}


def available_algorithms() -> list[str]:
    """The names that `identify(algorithm=...)` accepts.

    >>> available_algorithms()[:2]
    ['frugal-top', 'frugal-top-noniid']
    """
    return list(_catalogue)


def algorithms_where(**attributes: Any) -> list[str]:
    """The names of the algorithms whose class attributes have these values.

    >>> algorithms_where(stops_early=True)
    ['confident-top', 'confident-top-noniid', 'kl-lucb', 'fed-elim']
    """

    def matches(make: Callable[..., Algorithm]) -> bool:
        cls = make.func if isinstance(make, partial) else make
        return all(getattr(cls, attribute, None) == value for attribute, value in attributes.items())

    return [name for name, make in _catalogue.items() if matches(make)]


def register_algorithm(name: str, make: Callable[..., Algorithm]) -> None:
    """Register your own algorithm under a name; `make` is its class.

    >>> import collabtop as ct
    >>> ct.register_algorithm("kzz-again", ct.KZZ)
    >>> ct.make_algorithm("kzz-again", balanced=True).title
    'kzz-balanced'
    """
    _catalogue[name] = make


def make_algorithm(name: str, **options: Any) -> Algorithm:
    """Make an algorithm from its name and options.

    >>> make_algorithm("collab-top-iid", schedule="full")
    CollabTopIID(schedule='full')
    """
    make = _catalogue.get(name)
    if make is None:
        close = difflib.get_close_matches(name, _catalogue, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        raise UnknownAlgorithmError(f"algorithm is {name!r}{hint}, but one of these is needed: {', '.join(_catalogue)}")
    allowed = algorithm_options(name) if options else {}
    for option in options:
        if option not in allowed:
            has = f"its options are {', '.join(allowed)}" if allowed else "it has no options"
            raise InputError(f"{option} is not an option of {name}: {has}", argument=option)
    return make(**options)


def algorithm_options(name: str) -> dict[str, Any]:
    """The options of an algorithm, with their defaults.

    >>> algorithm_options("collab-top-iid")
    {'schedule': 'paper'}
    """
    make = _catalogue[name]
    fixed = make.keywords if isinstance(make, partial) else {}
    parameters = inspect.signature(make).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in fixed}
