"""A run against the chat endpoint: `python -m tests.support.chat_run PORT CHECKPOINT CALLS [WORKERS]`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import collabtop as ct
from tests.support.chat_endpoint import get

PROMPTS = [f"prompt-{'long-' * (number % 3)}{number}" for number in range(12)]
POLICY = ct.PullPolicy(retries=6, wait=0.05, time_limit=1.0)


def scorer(port: int):
    """An async function that asks the endpoint about a prompt."""

    async def score(prompt: str, rng: np.random.Generator) -> ct.Reward:
        reply = await get(port, f"/chat/{prompt}")
        value = rng.random() < 0.3 + 0.05 * PROMPTS.index(prompt)
        return ct.Reward(value, cost=float(reply["price"]), note=str(reply["answer"]))  # type: ignore[arg-type]

    return score


def run(port: int, checkpoint: Path, calls: int, workers: int = 16, rate: float | None = 20) -> ct.Result:
    """Find the best prompt within so many calls."""
    return ct.identify(
        PROMPTS, 1, pull=scorer(port), horizon=calls, seed=1, policy=POLICY, workers=workers, rate=rate,
        checkpoint=checkpoint,
    )  # fmt: skip


if __name__ == "__main__":
    run(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
