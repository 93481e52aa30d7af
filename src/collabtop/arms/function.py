"""The user's own function as arms: one call, one reward."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from collabtop.arms.base import Arms, Ints, Reals
from collabtop.arms.draws import Draws
from collabtop.errors import InputError, PullError

Pull = Callable[[Any, np.random.Generator], float]


class FunctionArms(Arms):
    """Candidates and a function that tries one of them once: `pull(candidate, rng)` gives a reward in [0, 1].

    `rng` is made anew for every pull from (seed, agent, pull number, attempt): use it for all chance in
    `pull`, and a run can be repeated to the letter.

    >>> import collabtop as ct
    >>> prompts = ["short", "polite", "step by step"]
    >>> def score(prompt, rng):
    ...     return rng.random() < len(prompt) / 20
    >>> arms = ct.FunctionArms(prompts, score)
    >>> ct.identify(arms, m=1, agents=2, horizon=200, seed=1).top
    ['step by step']
    """

    def __init__(self, candidates: Sequence[Any], pull: Pull, *, labels: Sequence[str] | None = None) -> None:
        if not callable(pull):
            raise InputError(f"pull is {pull!r:.80}, but a function pull(candidate, rng) is needed")
        self.candidates = list(candidates)
        if labels is None:
            labels = [str(candidate) for candidate in self.candidates]
        super().__init__(len(self.candidates), labels=labels)
        self._function = pull

    def pull(self, arms: Ints, times: Ints, draws: Draws) -> Reals:
        """Call the function once for each pull, in the order of `arms`."""
        sums = np.zeros(len(arms))
        number = draws.made
        for place, (arm, count) in enumerate(zip(arms, np.broadcast_to(times, arms.shape), strict=True)):
            for _ in range(count):
                sums[place] += self._reward(int(arm), draws.for_pull(number))
                number += 1
        return sums

    def _reward(self, arm: int, rng: np.random.Generator) -> float:
        label = self.label(arm)
        try:
            reward = self._function(self.candidates[arm], rng)
        except Exception as error:
            raise PullError(f"pull of candidate {label!r} raised {type(error).__name__}: {error}", label) from error
        if not isinstance(reward, numbers.Real | np.bool_):
            raise PullError(f"pull of candidate {label!r} returned {reward!r:.80}, which is not a number", label)
        if not 0 <= reward <= 1:  # so says NaN too
            raise PullError(f"pull of candidate {label!r} returned {reward!s:.80}, but a reward lies in [0, 1]", label)
        return float(reward)
