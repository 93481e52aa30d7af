"""The smallest batch of pulls on which anything that a site sends may depend."""

import numpy as np

from collabtop.errors import ProtocolError
from collabtop.protocol.extension import extension_of
from collabtop.protocol.messages import Prune, Pull, PullHand, PullOpen, Request


class SmallBatchError(ProtocolError):
    """The answer to a request would depend on a batch of `pulls` pulls, fewer than min_batch."""

    def __init__(self, pulls: int, min_batch: int) -> None:
        super().__init__(f"a batch of size {pulls} was requested, but min_batch is {min_batch}")
        self.pulls = pulls


def check_batch(request: Request, min_batch: int) -> None:
    """Raise `SmallBatchError` if the answer would depend on a batch of too few pulls.

    Two successive means of an arm reveal the mean of the pulls in between, and so do two successive decisions about
    it, so every batch has to be large enough.

    >>> check_batch(Request(0, 1, (Pull(None, np.array([5])),)), min_batch=5)
    >>> check_batch(Request(0, 2, (Pull(None, np.array([4])),)), min_batch=5)
    Traceback (most recent call last):
        ...
    collabtop.teams.sites.min_batch.SmallBatchError: a batch of size 4 was requested, but min_batch is 5
    """
    smallest = smallest_batch(request)
    if smallest is not None and smallest < min_batch:
        raise SmallBatchError(smallest, min_batch)


def smallest_batch(request: Request) -> int | None:
    """The fewest new pulls behind a mean or a decision in the answer; None if there are no new pulls."""
    batches: list[int] = []
    for message in request.messages:
        if isinstance(message, Pull):
            batches += message.times[message.times > 0].tolist()
        elif isinstance(message, PullOpen | PullHand):
            batches.append(message.times)
        elif isinstance(message, Prune):
            # Which arms survive a stage is decided by its pulls, so every stage counts, not only the last one.
            batches += np.diff(message.pulls, prepend=0).tolist()
        elif (extension := extension_of(type(message))) is not None:
            batches.append(extension.smallest_batch(message) or 0)
    return min((pulls for pulls in batches if pulls > 0), default=None)


def least_squares(min_batch: int) -> int:
    """The smallest batch whose mean square is sent: one pull more, since a mean and a mean square reveal two rewards.

    >>> least_squares(2), least_squares(1)
    (3, 0)
    """
    return min_batch + 1 if min_batch > 1 else 0
