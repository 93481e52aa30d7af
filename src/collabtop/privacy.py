"""Differential privacy: the noise that agents add to sums of rewards, and what it guarantees (docs/privacy.md)."""

import hashlib
import math
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from collabtop.validation import positive_number, real_number, wrong_value

PrivacyUnit = Literal["example", "reward"]
"""What is protected: the reward of one pull, or all rewards of one example."""

_FINEST_GRID = -10
_MARGIN = 10
"""Noise beyond this many standard deviations is cut off: it does not occur in practice."""
_BLOCK = 4_096


class Privacy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Differential privacy of a run: agents add noise to every sum of rewards before anything is decided or sent.

    Args:
        epsilon: how much the answers may reveal about one unit; smaller is more private, and 1 is a common choice.
        delta: a probability with which more may be revealed; far below 1 / number of units.
        unit: `"reward"` protects the reward of each pull, `"example"` all rewards of each example, whichever
            candidates were scored on it (`DatasetArms` without `replace` and without `rng` only).

    >>> import collabtop as ct
    >>> privacy = ct.Privacy(epsilon=1.0, delta=1e-6, unit="reward")
    >>> arms = ct.BernoulliArms([0.9, 0.5, 0.1])
    >>> result = ct.identify(arms, m=1, agents=2, horizon=3_000, privacy=privacy, seed=1)
    >>> result.top, result.privacy
    ([0], PrivacySpent(epsilon=0.99999..., delta=1e-06, unit='reward', deviation=5.35...))
    """

    epsilon: float
    delta: float
    unit: PrivacyUnit

    def __post_init__(self) -> None:
        positive_number("epsilon", self.epsilon)
        if not 0 < real_number("delta", self.delta) < 1:
            raise wrong_value("delta", self.delta, "a probability between 0 and 1 is needed, such as 1e-6")
        if self.unit not in ("example", "reward"):
            raise wrong_value("unit", self.unit, "'example' or 'reward' is needed")

    @property
    def rho(self) -> float:
        """The zCDP parameter that gives this epsilon and delta.

        >>> round(Privacy(epsilon=1.0, delta=1e-6, unit="reward").rho, 4)
        0.0175
        """
        log = -math.log(self.delta)
        return (self.epsilon / (math.sqrt(log + self.epsilon) + math.sqrt(log))) ** 2


class PrivacySpent(msgspec.Struct, frozen=True):
    """The differential privacy that a run had."""

    epsilon: float
    delta: float
    unit: PrivacyUnit
    deviation: float
    """The standard deviation of the noise in each sum of rewards, as internal values: the bounds are 0 and 1."""

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:.3g} per {self.unit} (delta {self.delta:g})"


def epsilon_of(rho: float, delta: float) -> float:
    """The epsilon that rho-zCDP gives at this delta (Bun and Steinke 2016, proposition 1.3).

    >>> round(epsilon_of(Privacy(epsilon=1.0, delta=1e-6, unit="reward").rho, 1e-6), 9)
    1.0
    """
    return rho + 2 * math.sqrt(rho * -math.log(delta))


class NoiseScale(msgspec.Struct, frozen=True):
    """The noise that a privacy asks for: a discrete Gaussian on the multiples of `grid`.

    >>> scale = NoiseScale.of(Privacy(epsilon=1.0, delta=1e-6, unit="example"), n=40, horizon=10_000)
    >>> scale.grid, round(scale.deviation, 1)
    (0.0009765625, 33.9)
    """

    variance: int
    """In units of the grid."""
    grid: float
    entries: int
    """How many rewards one unit of privacy has."""
    once: bool
    """Whether that relies on no candidate being scored on the same example twice."""

    @classmethod
    def of(cls, privacy: Privacy, n: int, horizon: int, agents: int = 1) -> "NoiseScale":
        """The noise for a run with n candidates; `agents` of them may use the same examples."""
        # Sums of T rewards have rounding errors of up to T^2 2^-53, which must stay below half of the grid.
        grid = 2.0 ** max(_FINEST_GRID, 2 * math.ceil(math.log2(horizon)) - 50)
        unit = privacy.unit
        entries = n * agents if unit == "example" else 1
        return cls(math.ceil(entries * (1 / grid + 1) ** 2 / (2 * privacy.rho)), grid, entries, unit == "example")

    def at_least(self, other: "NoiseScale | None") -> "NoiseScale":
        """This noise, or the other on the same grid if that is more; what it gives in units of this one."""
        if other is None:
            return self
        return NoiseScale(max(self.variance, other.variance), self.grid, self.entries, self.once or other.once)

    @property
    def deviation(self) -> float:
        """The standard deviation, as a sum of rewards."""
        return math.sqrt(self.variance) * self.grid

    @property
    def rho(self) -> float:
        """The zCDP parameter that the noise gives."""
        return self.entries * (1 / self.grid + 1) ** 2 / (2 * self.variance)

    @property
    def margin(self) -> float:
        """By how much a noisy sum may be outside of its range."""
        return _MARGIN * self.deviation

    def spent(self, privacy: Privacy) -> PrivacySpent:
        """What a run with this noise spends."""
        return PrivacySpent(epsilon_of(self.rho, privacy.delta), privacy.delta, privacy.unit, self.deviation)


class Noise:
    """The noise of one agent: the same for the same seed, agent and pull number, so that a run can be resumed.

    Args:
        scale: how much.
        margin: noisy sums further than this from [0, times] are moved to it: what a coordinator accepts.
        seed: the seed of the agent's draws, which at a site is secret.
        agent: the agent's number.

    >>> scale = NoiseScale.of(Privacy(epsilon=1.0, delta=1e-6, unit="reward"), n=2, horizon=100)
    >>> noise = Noise(scale, scale.margin, seed=7, agent=0)
    >>> noisy = noise.add(np.array([3.0, 50.0]), np.array([100]), first=0)
    >>> (noisy == noise.add(np.array([3.0, 50.0]), np.array([100]), first=0)).all()
    np.True_
    """

    def __init__(self, scale: NoiseScale, margin: float, seed: int, agent: int) -> None:
        self.scale = scale
        self._margin, self._key = margin, b"collabtop noise %d %d" % (seed, agent)

    def add(self, sums: NDArray[np.float64], times: NDArray[np.int64], first: int) -> NDArray[np.float64]:
        """Noisy sums of a batch that begins with the agent's pull number `first`."""
        bits, grid = RandomBits(b"%s %d" % (self._key, first)), self.scale.grid
        drawn = [discrete_gaussian(self.scale.variance, bits) for _ in range(len(sums))]
        noisy: NDArray[np.float64] = (np.rint(sums / grid) + np.array(drawn, np.float64)) * grid
        return np.clip(noisy, -self._margin, times + self._margin)


class RandomBits:
    """Uniform random integers from SHAKE-256, a cryptographic function, of a key.

    >>> bits = RandomBits(b"key")
    >>> [bits.below(6) for _ in range(10)] == [RandomBits(b"key").below(6)] * 10
    False
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._blocks = key, 0
        self._block, self._used = b"", 0

    def below(self, limit: int) -> int:
        """A uniform integer from 0 to limit - 1, exactly."""
        width = (limit - 1).bit_length()
        size = (width + 7) // 8
        while True:
            if self._used + size > len(self._block):
                self._block = hashlib.shake_256(b"%s %d" % (self._key, self._blocks)).digest(max(_BLOCK, size))
                self._blocks, self._used = self._blocks + 1, 0
            number = int.from_bytes(self._block[self._used : self._used + size], "little") >> (8 * size - width)
            self._used += size
            if number < limit:
                return number


def discrete_gaussian(variance: int, bits: RandomBits) -> int:
    """An integer x with probability proportional to exp(-x^2 / (2 variance)), exactly.

    Algorithm 3 of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy" (2020), in integers.

    >>> bits = RandomBits(b"key")
    >>> sample = [discrete_gaussian(100, bits) for _ in range(2_000)]
    >>> 9 < np.std(sample) < 11
    np.True_
    """
    scale = math.isqrt(variance) + 1
    while True:
        number = _discrete_laplace(scale, bits)
        if _accept(bits, (abs(number) * scale - variance) ** 2, 2 * variance * scale**2):
            return number


def _discrete_laplace(scale: int, bits: RandomBits) -> int:
    """An integer x with probability proportional to exp(-|x| / scale): algorithm 2."""
    while True:
        rest = bits.below(scale)
        if not _accept(bits, rest, scale):
            continue
        whole = 0
        while _accept(bits, 1, 1):
            whole += 1
        size, negative = rest + scale * whole, bits.below(2)
        if size or not negative:
            return -size if negative else size


def _accept(bits: RandomBits, numerator: int, denominator: int) -> bool:
    """True with probability exp(-numerator / denominator): algorithm 1."""
    while numerator > denominator:
        if not _accept(bits, 1, 1):
            return False
        numerator -= denominator
    count = 1
    while bits.below(denominator * count) < numerator:
        count += 1
    return count % 2 == 1
