"""Arms that take the place of real ones."""

from __future__ import annotations

import numpy as np
import pytest

import collabtop as ct
from collabtop.arms import Draws
from collabtop.arms.stand_ins import NoiselessArms, UnpullableArms
from collabtop.testing import check_arms


@pytest.mark.parametrize(
    "arms",
    [NoiselessArms(np.arange(1, 8) / 7), NoiselessArms([0.3, 0.2], agents=3), NoiselessArms([[0.3, 0.2], [0.1, 0.6]])],
)
def test_arms_without_noise_keep_the_contract_and_pay_their_means(arms):
    check_arms(arms)
    means = arms.means if arms.means.ndim == 1 else arms.means[:, 1]
    sums = arms.pull(np.arange(arms.n), np.array([5]), Draws(seed=1, agent=1))
    assert sums.tolist() == (means * 5).tolist()


def test_arms_without_noise_are_non_iid_for_agents_or_a_table():
    assert NoiselessArms([0.3, 0.2]).iid
    assert NoiselessArms([0.3, 0.2], agents=3).agents == 3
    assert NoiselessArms([[0.3, 0.2], [0.1, 0.6]]).agents == 2


def test_arms_that_cannot_be_pulled_have_a_number_and_labels():
    arms = UnpullableArms(2, labels=["a", "b"])
    assert (arms.n, arms.label(1)) == (2, "b")
    with pytest.raises(ct.ProtocolError, match="cannot be pulled"):
        arms.pull(np.array([0]), np.array([1]), Draws(seed=1, agent=0))
