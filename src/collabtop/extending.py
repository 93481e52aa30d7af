"""Everything that arms, algorithms and teams of your own import, besides the public names of `collabtop`.

>>> from collabtop.extending import Agent, Coordinator, Team
"""

from collabtop.algorithms.base import Algorithm
from collabtop.algorithms.shared.allocation import AllAgents, balanced_time, pull_balanced, pull_in_turn
from collabtop.algorithms.shared.elimination import Settled, eliminate, settle, settle_rest, smallest
from collabtop.arms.base import Arms, Ints, Reals, Recorder
from collabtop.arms.draws import Draws
from collabtop.coordination.coordinator import Coordinator
from collabtop.coordination.scoreboard import Estimate, Estimates, Scoreboard
from collabtop.coordination.team import Batch, Team
from collabtop.problem import Problem
from collabtop.protocol.agent import Agent
from collabtop.protocol.ledger import TransportStats
from collabtop.protocol.messages import Means, Message, Pull, Reply, Request
from collabtop.protocol.setup import Setup
from collabtop.runlog.recorder import RewardRecorder
from collabtop.teams.remote.reports import ReportBuffer, ReportOptions, ReportSink

__all__ = [
    "Agent",
    "Algorithm",
    "AllAgents",
    "Arms",
    "Batch",
    "Coordinator",
    "Draws",
    "Estimate",
    "Estimates",
    "Ints",
    "Means",
    "Message",
    "Problem",
    "Pull",
    "Reals",
    "Recorder",
    "Reply",
    "ReportBuffer",
    "ReportOptions",
    "ReportSink",
    "Request",
    "RewardRecorder",
    "Scoreboard",
    "Settled",
    "Setup",
    "Team",
    "TransportStats",
    "balanced_time",
    "eliminate",
    "pull_balanced",
    "pull_in_turn",
    "settle",
    "settle_rest",
    "smallest",
]
