"""The best 5 of 100 prompt variants, with a scorer that takes time, costs money and sometimes fails.

    python examples/prompts.py [--out picture.png] [--checkpoint run.ctlog]

The scorer simulates a language model: it sleeps, raises, and answers correctly with a probability that depends on the
prompt. Replace the body of `ask` with your own call; everything else stays the same.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import zlib

import numpy as np

import collabtop as ct

ROLES = (
    "",
    "You are an expert. ",
    "You are a careful teacher. ",
    "You are a pirate. ",
    "Pretend to be a search engine. ",
)
STYLES = ("", "Think step by step. ", "Be brief. ", "Answer in one word. ", "Check your answer twice. ")
ENDINGS = ("", "Thank you!", "This is very important.", "I will tip you.")
PROMPTS = [role + style + ending or "(no prompt)" for role, style, ending in itertools.product(ROLES, STYLES, ENDINGS)]
QUESTIONS = [f"question {number}" for number in range(200)]

_WORTH = {"Think step by step. ": 0.16, "Check your answer twice. ": 0.13, "You are an expert. ": 0.06}
_WORTH |= {"You are a pirate. ": -0.15, "Answer in one word. ": -0.1, "You are a careful teacher. ": 0.04}


class BusyError(Exception):
    """The service has too many requests."""


def chance_of_a_right_answer(prompt: str, question: str) -> float:
    difficulty = zlib.crc32(question.encode()) % 100 / 400
    return 0.65 - difficulty + sum(worth for part, worth in _WORTH.items() if part in prompt)


async def ask(prompt: str, question: str, rng: np.random.Generator) -> bool:
    await asyncio.sleep(rng.exponential(0.002))
    if rng.random() < 0.03:
        raise BusyError("too many requests")
    return bool(rng.random() < chance_of_a_right_answer(prompt, question))


def cents(prompt: str) -> float:
    return 0.01 + len(prompt) / 2_000


def search(seed: int = 1, checkpoint: str | None = None) -> ct.Result:
    policy = ct.PullPolicy(retries=5, wait=0.01, retry_on=(BusyError,), time_limit=5, failures="skip")
    arms = ct.DatasetArms(PROMPTS, QUESTIONS, ask, policy=policy)
    return ct.identify(arms, m=5, agents=20, budget=400, cost=cents, seed=seed, team="threads", checkpoint=checkpoint)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="save a figure of the run to this file")
    parser.add_argument("--checkpoint", help="store every answer in this file, and continue from it")
    arguments = parser.parse_args()
    result = search(checkpoint=arguments.checkpoint)
    print(result.table())
    assert result.spending is not None  # search() has a budget
    print(
        f"{result.pulls} questions asked, {result.spending.spent:.0f} of {result.spending.budget:.0f} cents spent, "
        f"{result.retries} attempts retried, {sum(result.failures.values())} pulls failed for good"
    )
    if arguments.out:
        result.plot().savefig(arguments.out, dpi=100)


if __name__ == "__main__":
    main()
