"""Arms: the candidates that agents pull."""

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
