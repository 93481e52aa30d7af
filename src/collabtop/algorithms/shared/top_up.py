"""Top-up rounds: what a plan for the worst case leaves of a budget is spent on the arms next to the border.

A budget is planned as if the most expensive arms stayed open longest and every pull cost its full price. The agents
report what their pulls were charged. As long as that leaves enough for another pull, the coordinator lets them pull the
arms whose place is least certain, and decides again between these. If the coordinator does not know how often both
sides of the border were pulled (collab-top-iid with one agent), the rest stays unspent.

Pulls are allocated as in APT (Locatelli, Gutzeit and Carpentier 2016): arm i, at a distance d_i from the border, should
have pulls in proportion to 1 / d_i^2. The plan of a round uses full prices, so a round never costs more than is left.
Paired arms are only compared if they were pulled equally often, on the same examples: those next to the border get as
many pulls as the deepest arm has, and then further ones together.
"""

import math

import numpy as np

from collabtop.algorithms.shared.allocation import pull_each
from collabtop.coordination.coordinator import Coordinator
from collabtop.coordination.scoreboard import ACCEPTED, Columns
from collabtop.protocol.messages import Bill, Charged, Ints, Means, Pull, Reals
from collabtop.protocol.setup import Setup

PHASE = "top-up"
_MOST_ROUNDS = 1_000
_LAST_ROUND = 0.05
"""The last round begins when this share of the budget is left; before, a round is planned to spend half of the rest."""
_DEPTH = 4
"""Arms with fewer pulls than the deepest one by more than this factor were rejected early, and stay so."""
_SMALLEST_GAP = 1e-3  # of the largest one, so that the two arms next to the border do not take all pulls
_NONE = np.empty(0, np.int64)


def spend_rest(coordinator: Coordinator, setup: Setup, rng: np.random.Generator) -> None:
    """Spend what is left of the budget in top-up rounds, and decide again between the arms next to the border."""
    assert setup.budget is not None
    assert coordinator.spent is not None
    spent, share = coordinator.spent, 1.0
    coordinator.meter.extend(setup.extra_pulls)
    prices = np.array(setup.prices)
    for _ in range(_MOST_ROUNDS):
        arms, times = _next_round(coordinator, setup, prices, spent, share)
        if not len(arms):
            break
        coordinator.begin_round(PHASE, live=len(arms))
        sums = _pull(coordinator, setup, arms, times)
        for count in np.unique(times).tolist():
            coordinator.scoreboard.add(arms[times == count], sums[times == count], count)
        before, spent = spent, ask_bill(coordinator)
        share = (spent - before) / float(prices[arms] @ times)
        if spent <= before:  # no pull was made, or all of them were free
            break
    _decide_again(coordinator, rng)


def ask_bill(coordinator: Coordinator) -> float:
    """What all pulls were charged so far, as the agents report it."""
    coordinator.spent = math.fsum(answer.cost for answer in coordinator.ask_all(Bill(), Charged))
    return coordinator.spent


def _next_round(coordinator: Coordinator, setup: Setup, prices: Reals, spent: float, share: float) -> tuple[Ints, Ints]:
    """The arms of the next round, and how often each is pulled; `share` of the prices was charged in the last round."""
    assert setup.budget is not None
    problem, columns = coordinator.problem, coordinator.scoreboard.columns()
    left = setup.budget - spent
    unit = 1 if setup.iid else problem.agents  # where arms differ, every agent pulls
    room = np.full(problem.n, np.iinfo(np.int64).max // 2)
    if problem.pull_limit is not None:
        room = np.maximum(0, problem.pull_limit - columns.pulls) // unit
    planned = left * min(1.0, 0.5 / max(share, 1e-9))
    for spend in (planned, left) if left > _LAST_ROUND * setup.budget else (left,):
        if problem.paired:
            counts = _join(columns, prices * unit, spend, room, unit)
        else:
            counts = _second_chances(columns, prices * unit, spend, room, unit) if spent < left else np.zeros_like(room)
            counts += _allocate(columns, prices * unit, spend - float(prices @ counts) * unit, room - counts, unit)
        arms = np.flatnonzero(counts)
        if len(arms):
            break
    return arms, counts[arms] * unit


def _deepest(columns: Columns) -> int:
    return int(columns.pulls.max(initial=0))


def _contenders(columns: Columns) -> Ints:
    """The arms with about as many pulls as the deepest one, between which the border is drawn again."""
    return np.flatnonzero((columns.pulls > 0) & (columns.pulls * _DEPTH >= _deepest(columns)))


def _join(columns: Columns, prices: Reals, spend: float, room: Ints, unit: int) -> Ints:
    """Pulls that bring the contenders next to the border to one depth, for up to half of `spend`, and then further."""
    counts, arms = np.zeros(len(prices), np.int64), _contenders(columns)
    border = _border(columns, arms)
    if border is None:
        return counts
    behind = (_deepest(columns) - columns.pulls[arms]) // unit
    order = np.lexsort((np.abs(columns.means[arms] - border), behind > 0))  # the deepest first: they need nothing
    arms, behind = arms[order], behind[order]
    joined = np.cumsum(prices[arms] * behind) <= spend / 2
    arms, behind = arms[joined], behind[joined]
    if _border(columns, arms) is None:
        return counts
    rest = spend - float(prices[arms] @ behind)
    counts[arms] = behind + min(int(rest // prices[arms].sum()), int((room[arms] - behind).min()))
    return counts


def _border(columns: Columns, arms: Ints) -> float | None:
    """The middle between the means next to the border; None if all of these arms are on one side of it."""
    top = int(np.count_nonzero(columns.verdicts[arms] == ACCEPTED))
    if not 0 < top < len(arms):
        return None
    return float(np.sort(columns.means[arms])[::-1][top - 1 : top + 1].mean())


def _second_chances(columns: Columns, prices: Reals, spend: float, room: Ints, unit: int) -> Ints:
    """Pulls that make contenders of arms that were rejected early, best first, for up to half of `spend`.

    They are only made if more than half of the budget is left: then the plan was too small for the budget.
    """
    counts = np.zeros(len(prices), np.int64)
    level = -(-_deepest(columns) // _DEPTH)
    early = np.flatnonzero((columns.pulls >= 0) & (columns.pulls < level) & (columns.verdicts != ACCEPTED))
    needed = -(-(level - columns.pulls[early]) // unit)
    early, needed = early[needed <= room[early]], needed[needed <= room[early]]
    order = np.argsort(-np.nan_to_num(columns.means[early], nan=-np.inf), kind="stable")
    early, needed = early[order], needed[order]
    affordable = np.cumsum(prices[early] * needed) <= spend / 2
    counts[early[affordable]] = needed[affordable]
    return counts


def _allocate(columns: Columns, prices: Reals, spend: float, room: Ints, unit: int) -> Ints:
    """Further pulls of the contenders that cost at most `spend`: in the end in proportion to 1 / gap^2."""
    counts = np.zeros(len(prices), np.int64)
    arms = _contenders(columns)
    border, arms_left = _border(columns, arms), arms[room[arms] > 0]
    if border is None or not len(arms_left):
        return counts
    gaps, largest = np.abs(columns.means[arms_left] - border), float(np.abs(columns.means[arms] - border).max())
    weights = 1 / np.maximum(gaps, max(_SMALLEST_GAP * largest, 1e-12)) ** 2
    pulls, price, most = columns.pulls[arms_left], prices[arms_left], room[arms_left]

    def further(level: float) -> Ints:
        wanted: Reals = np.ceil(np.maximum(0.0, level * weights - pulls) / unit)
        counts: Ints = np.minimum(wanted, most).astype(np.int64)
        return counts

    low, high = 0.0, float(((pulls + (spend / price + 1) * unit) / weights).max())
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if float(price @ further(middle)) <= spend else (low, middle)
    counts_left = further(low)
    _fill(counts_left, spend, price, most, order=np.argsort((pulls + counts_left * unit) / weights, kind="stable"))
    counts[arms_left] = counts_left
    return counts


def _fill(counts: Ints, spend: float, price: Reals, most: Ints, order: Ints) -> None:
    """Use what rounding has left for as many pulls as it pays for, of the arms in this order."""
    for index in order:
        rest = spend - float(price @ counts)
        if rest < price.min():
            return
        counts[index] += min(int(max(0.0, rest) // price[index]), most[index] - counts[index])


def _pull(coordinator: Coordinator, setup: Setup, arms: Ints, times: Ints) -> Reals:
    """Pull each arm so often, divided evenly over the agents, or where arms differ equally often by each."""
    if setup.iid:
        return pull_each(coordinator, arms, times)
    each = times // coordinator.agents
    answers = coordinator.ask_all(Pull(arms, each), Means)
    return np.asarray(sum(answer.means * each for answer in answers), np.float64)


def _decide_again(coordinator: Coordinator, rng: np.random.Generator) -> None:
    """Accept as many contenders as before, now those with the best means; equal ones stay where they are."""
    board, columns = coordinator.scoreboard, coordinator.scoreboard.columns()
    paired = coordinator.problem.paired
    arms = np.flatnonzero(columns.pulls == _deepest(columns)) if paired else _contenders(columns)
    accepted = columns.verdicts[arms] == ACCEPTED
    order = np.lexsort((rng.random(len(arms)), ~accepted, -columns.means[arms]))
    top = np.zeros(len(arms), bool)
    top[order[: int(accepted.sum())]] = True
    last = len(coordinator.meter.rounds()) - 1
    board.accept(arms[top & ~accepted], round=last, phase=PHASE)
    board.reject(arms[~top & accepted], round=last, phase=PHASE)
