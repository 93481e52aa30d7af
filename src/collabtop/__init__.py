"""Find the best m of n noisy options with a team of K agents that communicate as little as possible."""

from collabtop import datasets, events
from collabtop._version import __version__
from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.collab_top_iid import CollabTopIID
from collabtop.algorithms.collab_top_noniid import CollabTopNonIID
from collabtop.algorithms.confident_top import ConfidentTop, ConfidentTopNonIID
from collabtop.algorithms.frugal_top import FrugalTop
from collabtop.algorithms.frugal_top_noniid import FrugalTopNonIID
from collabtop.algorithms.kl_lucb import KLLUCB
from collabtop.algorithms.kzz import KZZ
from collabtop.algorithms.paired_top import PairedTop
from collabtop.algorithms.registry import available_algorithms, make_algorithm, register_algorithm
from collabtop.algorithms.sar import SAR
from collabtop.algorithms.sequential_halving import SequentialHalving
from collabtop.algorithms.shared.frugal_bound import frugal_error_bound, frugal_noniid_error_bound
from collabtop.algorithms.uniform import Uniform
from collabtop.arms import (
    Arms,
    BernoulliArms,
    BetaArms,
    DatasetArms,
    FunctionArms,
    HeterogeneousArms,
    LoggedArms,
    PullPolicy,
    batch,
    read_arms,
    read_rewards,
    replicates,
)
from collabtop.coordination.coordinator import Coordinator
from collabtop.coordination.scoreboard import Scoreboard
from collabtop.coordination.team import Team
from collabtop.errors import (
    AgentLostError,
    AgentsGoneError,
    BudgetError,
    CheckpointError,
    CollabtopError,
    FileError,
    HorizonError,
    InputError,
    ProtocolError,
    PullError,
    SettingError,
    SiteError,
    StudyError,
    UnknownAlgorithmError,
)
from collabtop.planning.forecasts import Forecast, dry_run
from collabtop.planning.planner import Plan, plan
from collabtop.problem import Problem, complexity, error_bound, gaps, speedup
from collabtop.runlog.log_repair import RepairReport, repair
from collabtop.runs.identification import identify
from collabtop.runs.result import Result
from collabtop.runs.resumption import resume
from collabtop.studies.grid import Study
from collabtop.studies.table import StudyTable
from collabtop.teams.local import LocalTeam
from collabtop.teams.ray.team import RayTeam
from collabtop.teams.sites.certificates import make_certificates, renew_certificates
from collabtop.teams.sites.revocation import revoke_certificates
from collabtop.teams.sites.site import SiteSummary, join
from collabtop.teams.sites.site_policy import SitePolicy, read_site_policy
from collabtop.teams.sites.team import RemoteArms, SitesTeam
from collabtop.teams.threads import ThreadsTeam

__all__ = [
    "KLLUCB",
    "KZZ",
    "SAR",
    "AgentLostError",
    "AgentsGoneError",
    "Algorithm",
    "Arms",
    "BernoulliArms",
    "BetaArms",
    "BudgetError",
    "CheckpointError",
    "CollabTopIID",
    "CollabTopNonIID",
    "CollabtopError",
    "ConfidentTop",
    "ConfidentTopNonIID",
    "Coordinator",
    "DatasetArms",
    "FileError",
    "Forecast",
    "FrugalTop",
    "FrugalTopNonIID",
    "FunctionArms",
    "HeterogeneousArms",
    "HorizonError",
    "InputError",
    "LocalTeam",
    "LoggedArms",
    "PairedTop",
    "Plan",
    "Problem",
    "ProtocolError",
    "PullError",
    "PullPolicy",
    "RayTeam",
    "RemoteArms",
    "RepairReport",
    "Result",
    "Scoreboard",
    "SequentialHalving",
    "SettingError",
    "SiteError",
    "SitePolicy",
    "SiteSummary",
    "SitesTeam",
    "Study",
    "StudyError",
    "StudyTable",
    "Team",
    "ThreadsTeam",
    "Uniform",
    "UnknownAlgorithmError",
    "__version__",
    "available_algorithms",
    "batch",
    "complexity",
    "datasets",
    "dry_run",
    "error_bound",
    "events",
    "frugal_error_bound",
    "frugal_noniid_error_bound",
    "gaps",
    "identify",
    "join",
    "make_algorithm",
    "make_certificates",
    "plan",
    "read_arms",
    "read_rewards",
    "read_site_policy",
    "register_algorithm",
    "renew_certificates",
    "repair",
    "replicates",
    "resume",
    "revoke_certificates",
    "speedup",
]
