"""The purse of a run with a budget: no call begins that it could not pay for."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from collabtop.errors import BudgetError

_ROUNDING = 1e-9
"""Sums of costs in a different order differ by less than this share."""


class Purse:
    """What all agents of a run in this process have spent, and what the calls under way may cost.

    A plan never costs more than its budget if pulls cost at most their prices. This is for those that cost more, and
    for failed attempts that were charged.

    >>> purse = Purse(budget=10.0, spent=8.0)
    >>> with purse.call(price=2.0) as bill:
    ...     bill.append(1.5)
    >>> with purse.call(price=2.0):
    ...     pass
    Traceback (most recent call last):
    collabtop.errors.BudgetError: the budget of 10 is used up before the run has ended (9.5 is spent): ...
    """

    def __init__(self, budget: float, spent: float = 0.0) -> None:
        self._budget, self._spent = budget, spent
        self._reserved, self._calls = 0.0, 0
        self._condition = threading.Condition()

    @contextmanager
    def call(self, price: float) -> Iterator[list[float]]:
        """Reserve the price of a call; what it was charged is appended to the list, otherwise it costs nothing."""
        most = self._budget * (1 + _ROUNDING)
        with self._condition:
            while self._calls and self._spent + self._reserved + price > most:  # calls may turn out cheaper
                self._condition.wait()
            if self._spent + price > most:
                raise BudgetError(
                    f"the budget of {self._budget:g} is used up before the run has ended ({self._spent:g} is spent): "
                    "pulls were charged more than cost= says, or failed attempts were charged; cost= has to be the "
                    "most that a pull can cost",
                    self._spent + price,
                )
            self._reserved += price
            self._calls += 1
        bill: list[float] = []
        try:
            yield bill
        finally:
            with self._condition:
                self._calls -= 1
                self._reserved = self._reserved - price if self._calls else 0.0
                self._spent += sum(bill)
                self._condition.notify_all()
