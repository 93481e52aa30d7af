"""Arms: the candidates that agents pull."""

import importlib

TYPE_CHECKING = False  # a type checker takes it for True

if TYPE_CHECKING:
    from collabtop.arms.base import Arms as Arms
    from collabtop.arms.calls import batch as batch
    from collabtop.arms.calls import replicates as replicates
    from collabtop.arms.dataset import DatasetArms as DatasetArms
    from collabtop.arms.draws import Draws as Draws
    from collabtop.arms.files import read_arms as read_arms
    from collabtop.arms.function import FunctionArms as FunctionArms
    from collabtop.arms.logged import LoggedArms as LoggedArms
    from collabtop.arms.logged import read_rewards as read_rewards
    from collabtop.arms.policy import PullPolicy as PullPolicy
    from collabtop.arms.simulated import BernoulliArms as BernoulliArms
    from collabtop.arms.simulated import BetaArms as BetaArms
    from collabtop.arms.simulated import HeterogeneousArms as HeterogeneousArms
    from collabtop.arms.simulated import SimulatedArms as SimulatedArms
else:
    _MODULE_OF = {
        "Arms": "base",
        "BernoulliArms": "simulated",
        "BetaArms": "simulated",
        "DatasetArms": "dataset",
        "Draws": "draws",
        "FunctionArms": "function",
        "HeterogeneousArms": "simulated",
        "LoggedArms": "logged",
        "PullPolicy": "policy",
        "SimulatedArms": "simulated",
        "batch": "calls",
        "read_arms": "files",
        "read_rewards": "logged",
        "replicates": "calls",
    }

    def __getattr__(name: str) -> object:
        """Import a name when it is first used: a worker process, which starts with each run, needs few of them."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
