"""A run that counts its pulls where a killed process cannot lose the count."""

from __future__ import annotations

import time

import collabtop as ct

MEANS = [0.15, 0.3, 0.45, 0.6, 0.75, 0.9]


class Counted:
    """A function that counts its own calls in a file, each with the first number its generator gave."""

    def __init__(self, path, seconds=0.0):
        self.path, self.seconds = path, seconds

    def __call__(self, mean, rng):
        first = rng.random()
        with self.path.open("ab", buffering=0) as file:
            file.write(f"{first!r}\n".encode())
        time.sleep(self.seconds)
        return first < mean

    def calls(self):
        return self.path.read_text().split() if self.path.exists() else []


def identify(pull, path=None, *, agents=3, horizon=40, seed=5, team="local", algorithm="auto", **more):
    return ct.identify(
        MEANS,
        2,
        pull=pull,
        agents=agents,
        horizon=horizon,
        seed=seed,
        team=team,
        algorithm=algorithm,
        checkpoint=path,
        **more,
    )
