"""Find the best m of n noisy options with a team of K agents that may hardly talk to each other."""

from collabtop import datasets as datasets
from collabtop.algorithms.base import Algorithm as Algorithm
from collabtop.algorithms.catalogue import available_algorithms as available_algorithms
from collabtop.algorithms.catalogue import make_algorithm as make_algorithm
from collabtop.algorithms.catalogue import register_algorithm as register_algorithm
from collabtop.algorithms.collab_top_iid import CollabTopIID as CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID as CollabTopNonIID
from collabtop.algorithms.confident_top import ConfidentTop as ConfidentTop
from collabtop.algorithms.confident_top import ConfidentTopNonIID as ConfidentTopNonIID
from collabtop.algorithms.frugal_bound import frugal_error_bound as frugal_error_bound
from collabtop.algorithms.frugal_top import FrugalTop as FrugalTop
from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID as FrugalTopNonIID
from collabtop.algorithms.kl_lucb import KLLUCB as KLLUCB
from collabtop.algorithms.kzz import KZZ as KZZ
from collabtop.algorithms.sar import SAR as SAR
from collabtop.algorithms.sequential_halving import SequentialHalving as SequentialHalving
from collabtop.algorithms.uniform import Uniform as Uniform
from collabtop.arms import Arms as Arms
from collabtop.arms import BernoulliArms as BernoulliArms
from collabtop.arms import BetaArms as BetaArms
from collabtop.arms import FunctionArms as FunctionArms
from collabtop.arms import HeterogeneousArms as HeterogeneousArms
from collabtop.arms import read_arms as read_arms
from collabtop.errors import CollabtopError as CollabtopError
from collabtop.errors import FileError as FileError
from collabtop.errors import HorizonError as HorizonError
from collabtop.errors import InputError as InputError
from collabtop.errors import ProtocolError as ProtocolError
from collabtop.errors import PullError as PullError
from collabtop.errors import SettingError as SettingError
from collabtop.errors import StudyError as StudyError
from collabtop.errors import UnknownAlgorithmError as UnknownAlgorithmError
from collabtop.problem import Problem as Problem
from collabtop.problem import complexity as complexity
from collabtop.problem import error_bound as error_bound
from collabtop.problem import gaps as gaps
from collabtop.problem import speedup as speedup
from collabtop.protocol.scoreboard import Scoreboard as Scoreboard
from collabtop.protocol.team import Team as Team
from collabtop.result import Result as Result
from collabtop.run import identify as identify
from collabtop.studies.grid import Study as Study
from collabtop.studies.table import StudyTable as StudyTable
from collabtop.teams.in_process import LocalTeam as LocalTeam

__version__ = "0.1.0"
