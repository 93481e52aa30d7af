"""Find the best m of n noisy options with a team of K agents that communicate as little as possible."""

import importlib

from collabtop._version import __version__ as __version__

TYPE_CHECKING = False  # a type checker takes it for True; `typing` alone would take most of the time of the import

if TYPE_CHECKING:
    from collabtop import datasets as datasets
    from collabtop import events as events
    from collabtop.algorithms.base import Algorithm as Algorithm
    from collabtop.algorithms.batched_sar import BatchedSAR as BatchedSAR
    from collabtop.algorithms.collab_top_iid import CollabTopIID as CollabTopIID
    from collabtop.algorithms.collab_top_noniid import CollabTopNonIID as CollabTopNonIID
    from collabtop.algorithms.confident_top import ConfidentTop as ConfidentTop
    from collabtop.algorithms.confident_top import ConfidentTopNonIID as ConfidentTopNonIID
    from collabtop.algorithms.fed_elim import FedElim as FedElim
    from collabtop.algorithms.frugal_top import FrugalTop as FrugalTop
    from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID as FrugalTopNonIID
    from collabtop.algorithms.hkk import HKK as HKK
    from collabtop.algorithms.kl_lucb import KLLUCB as KLLUCB
    from collabtop.algorithms.kzz import KZZ as KZZ
    from collabtop.algorithms.nsar import NSAR as NSAR
    from collabtop.algorithms.paired_top import PairedTop as PairedTop
    from collabtop.algorithms.registry import available_algorithms as available_algorithms
    from collabtop.algorithms.registry import make_algorithm as make_algorithm
    from collabtop.algorithms.registry import register_algorithm as register_algorithm
    from collabtop.algorithms.robust_top import RobustTop as RobustTop
    from collabtop.algorithms.sar import SAR as SAR
    from collabtop.algorithms.sequential_halving import SequentialHalving as SequentialHalving
    from collabtop.algorithms.shared.frugal_bound import frugal_error_bound as frugal_error_bound
    from collabtop.algorithms.shared.frugal_bound import frugal_noniid_error_bound as frugal_noniid_error_bound
    from collabtop.algorithms.tzz import TZZ as TZZ
    from collabtop.algorithms.uniform import Uniform as Uniform
    from collabtop.arms.base import Arms as Arms
    from collabtop.arms.calls import batch as batch
    from collabtop.arms.calls import replicates as replicates
    from collabtop.arms.dataset import DatasetArms as DatasetArms
    from collabtop.arms.files import read_arms as read_arms
    from collabtop.arms.function import FunctionArms as FunctionArms
    from collabtop.arms.logged import LoggedArms as LoggedArms
    from collabtop.arms.logged import read_rewards as read_rewards
    from collabtop.arms.policy import PullPolicy as PullPolicy
    from collabtop.arms.rate import Rate as Rate
    from collabtop.arms.rate import RetryLater as RetryLater
    from collabtop.arms.reward import Reward as Reward
    from collabtop.arms.simulated import BernoulliArms as BernoulliArms
    from collabtop.arms.simulated import BetaArms as BetaArms
    from collabtop.arms.simulated import HeterogeneousArms as HeterogeneousArms
    from collabtop.arms.tables import rows as rows
    from collabtop.coordination.coordinator import Coordinator as Coordinator
    from collabtop.coordination.scoreboard import Scoreboard as Scoreboard
    from collabtop.coordination.team import Team as Team
    from collabtop.errors import AgentLostError as AgentLostError
    from collabtop.errors import AgentsGoneError as AgentsGoneError
    from collabtop.errors import BudgetError as BudgetError
    from collabtop.errors import CheckpointError as CheckpointError
    from collabtop.errors import CollabtopError as CollabtopError
    from collabtop.errors import FileError as FileError
    from collabtop.errors import HorizonError as HorizonError
    from collabtop.errors import InputError as InputError
    from collabtop.errors import ProtocolError as ProtocolError
    from collabtop.errors import PullError as PullError
    from collabtop.errors import SettingError as SettingError
    from collabtop.errors import SiteError as SiteError
    from collabtop.errors import StudyError as StudyError
    from collabtop.errors import UnknownAlgorithmError as UnknownAlgorithmError
    from collabtop.planning.budget_plan import BudgetPlan as BudgetPlan
    from collabtop.planning.forecasts import Forecast as Forecast
    from collabtop.planning.forecasts import dry_run as dry_run
    from collabtop.planning.planner import Plan as Plan
    from collabtop.planning.planner import plan as plan
    from collabtop.privacy import Privacy as Privacy
    from collabtop.privacy import PrivacySpent as PrivacySpent
    from collabtop.problem import Problem as Problem
    from collabtop.problem import complexity as complexity
    from collabtop.problem import error_bound as error_bound
    from collabtop.problem import gaps as gaps
    from collabtop.problem import speedup as speedup
    from collabtop.runlog.log_repair import RepairReport as RepairReport
    from collabtop.runlog.log_repair import repair as repair
    from collabtop.runlog.totals import Totals as Totals
    from collabtop.runs.extended_run import extend as extend
    from collabtop.runs.handle import Run as Run
    from collabtop.runs.identification import identify as identify
    from collabtop.runs.identification import start as start
    from collabtop.runs.peeking import peek as peek
    from collabtop.runs.progress import Progress as Progress
    from collabtop.runs.reported_rows import AskedPull as AskedPull
    from collabtop.runs.result import Result as Result
    from collabtop.runs.resumption import resume as resume
    from collabtop.runs.session import Session as Session
    from collabtop.runs.session import ask_tell as ask_tell
    from collabtop.studies.grid import Study as Study
    from collabtop.studies.table import StudyTable as StudyTable
    from collabtop.teams.local import LocalTeam as LocalTeam
    from collabtop.teams.processes import ProcessesTeam as ProcessesTeam
    from collabtop.teams.ray.team import RayTeam as RayTeam
    from collabtop.teams.sites.certificates import make_certificates as make_certificates
    from collabtop.teams.sites.certificates import renew_certificates as renew_certificates
    from collabtop.teams.sites.revocation import revoke_certificates as revoke_certificates
    from collabtop.teams.sites.site import SiteSummary as SiteSummary
    from collabtop.teams.sites.site import join as join
    from collabtop.teams.sites.site_policy import SitePolicy as SitePolicy
    from collabtop.teams.sites.site_policy import read_site_policy as read_site_policy
    from collabtop.teams.sites.team import RemoteArms as RemoteArms
    from collabtop.teams.sites.team import SitesTeam as SitesTeam
    from collabtop.teams.threads import ThreadsTeam as ThreadsTeam

    __all__: list[str]

_MODULE_OF = {
    "AgentLostError": "errors",
    "AgentsGoneError": "errors",
    "Algorithm": "algorithms.base",
    "Arms": "arms.base",
    "AskedPull": "runs.reported_rows",
    "BatchedSAR": "algorithms.batched_sar",
    "BernoulliArms": "arms.simulated",
    "BetaArms": "arms.simulated",
    "BudgetError": "errors",
    "BudgetPlan": "planning.budget_plan",
    "CheckpointError": "errors",
    "CollabTopIID": "algorithms.collab_top_iid",
    "CollabTopNonIID": "algorithms.collab_top_noniid",
    "CollabtopError": "errors",
    "ConfidentTop": "algorithms.confident_top",
    "ConfidentTopNonIID": "algorithms.confident_top",
    "Coordinator": "coordination.coordinator",
    "DatasetArms": "arms.dataset",
    "FedElim": "algorithms.fed_elim",
    "FileError": "errors",
    "Forecast": "planning.forecasts",
    "FrugalTop": "algorithms.frugal_top",
    "FrugalTopNonIID": "algorithms.frugal_top_noniid",
    "FunctionArms": "arms.function",
    "HKK": "algorithms.hkk",
    "HeterogeneousArms": "arms.simulated",
    "HorizonError": "errors",
    "InputError": "errors",
    "KLLUCB": "algorithms.kl_lucb",
    "KZZ": "algorithms.kzz",
    "LocalTeam": "teams.local",
    "LoggedArms": "arms.logged",
    "NSAR": "algorithms.nsar",
    "PairedTop": "algorithms.paired_top",
    "Plan": "planning.planner",
    "Privacy": "privacy",
    "PrivacySpent": "privacy",
    "Problem": "problem",
    "ProcessesTeam": "teams.processes",
    "Progress": "runs.progress",
    "ProtocolError": "errors",
    "PullError": "errors",
    "PullPolicy": "arms.policy",
    "Rate": "arms.rate",
    "RayTeam": "teams.ray.team",
    "RemoteArms": "teams.sites.team",
    "RepairReport": "runlog.log_repair",
    "Result": "runs.result",
    "RetryLater": "arms.rate",
    "Reward": "arms.reward",
    "RobustTop": "algorithms.robust_top",
    "Run": "runs.handle",
    "SAR": "algorithms.sar",
    "Scoreboard": "coordination.scoreboard",
    "SequentialHalving": "algorithms.sequential_halving",
    "Session": "runs.session",
    "SettingError": "errors",
    "SiteError": "errors",
    "SitePolicy": "teams.sites.site_policy",
    "SiteSummary": "teams.sites.site",
    "SitesTeam": "teams.sites.team",
    "Study": "studies.grid",
    "StudyError": "errors",
    "StudyTable": "studies.table",
    "TZZ": "algorithms.tzz",
    "Team": "coordination.team",
    "ThreadsTeam": "teams.threads",
    "Totals": "runlog.totals",
    "Uniform": "algorithms.uniform",
    "UnknownAlgorithmError": "errors",
    "ask_tell": "runs.session",
    "available_algorithms": "algorithms.registry",
    "batch": "arms.calls",
    "complexity": "problem",
    "datasets": "datasets",
    "dry_run": "planning.forecasts",
    "error_bound": "problem",
    "events": "events",
    "extend": "runs.extended_run",
    "frugal_error_bound": "algorithms.shared.frugal_bound",
    "frugal_noniid_error_bound": "algorithms.shared.frugal_bound",
    "gaps": "problem",
    "identify": "runs.identification",
    "join": "teams.sites.site",
    "make_algorithm": "algorithms.registry",
    "make_certificates": "teams.sites.certificates",
    "peek": "runs.peeking",
    "plan": "planning.planner",
    "read_arms": "arms.files",
    "read_rewards": "arms.logged",
    "read_site_policy": "teams.sites.site_policy",
    "register_algorithm": "algorithms.registry",
    "renew_certificates": "teams.sites.certificates",
    "repair": "runlog.log_repair",
    "replicates": "arms.calls",
    "resume": "runs.resumption",
    "revoke_certificates": "teams.sites.revocation",
    "rows": "arms.tables",
    "speedup": "problem",
    "start": "runs.identification",
}
"""Every public name with the module that defines it, imported when the name is first used."""

if not TYPE_CHECKING:  # a type checker reads the imports above instead
    __all__ = ["__version__", *_MODULE_OF]

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used, so that `import collabtop` does not import NumPy."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(f"{__name__}.{_MODULE_OF[name]}")
        globals()[name] = value = module if name == _MODULE_OF[name] else getattr(module, name)
        return value

    def __dir__() -> list[str]:
        """Every name, so that completion offers those that are not imported yet."""
        return sorted({*globals(), *_MODULE_OF})
