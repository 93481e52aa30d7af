"""Everything that arms, algorithms and teams of your own import, besides the public names of `collabtop`.

>>> from collabtop.extending import Agent, Coordinator, Team
"""

from collabtop.algorithms.base import Algorithm as Algorithm
from collabtop.algorithms.shared.allocation import AllAgents as AllAgents
from collabtop.algorithms.shared.allocation import pull_balanced as pull_balanced
from collabtop.algorithms.shared.allocation import pull_in_turn as pull_in_turn
from collabtop.algorithms.shared.batched_runs import BatchedRuns as BatchedRuns
from collabtop.algorithms.shared.elimination import eliminate as eliminate
from collabtop.algorithms.shared.elimination import settle as settle
from collabtop.algorithms.shared.elimination import settle_rest as settle_rest
from collabtop.arms.base import Arms as Arms
from collabtop.arms.draws import Draws as Draws
from collabtop.arms.unit import Unit as Unit
from collabtop.coordination.coordinator import Coordinator as Coordinator
from collabtop.coordination.scoreboard import Scoreboard as Scoreboard
from collabtop.coordination.team import Team as Team
from collabtop.errors import ProtocolError as ProtocolError
from collabtop.problem import Problem as Problem
from collabtop.protocol.agent import Agent as Agent
from collabtop.protocol.extension import AgentAccess as AgentAccess
from collabtop.protocol.extension import AgentExtension as AgentExtension
from collabtop.protocol.extension import register_extension as register_extension
from collabtop.protocol.ledger import TransportStats as TransportStats
from collabtop.protocol.messages import Flags as Flags
from collabtop.protocol.messages import Ints as Ints
from collabtop.protocol.messages import Means as Means
from collabtop.protocol.messages import Message as Message
from collabtop.protocol.messages import Pull as Pull
from collabtop.protocol.messages import Reals as Reals
from collabtop.protocol.messages import Reply as Reply
from collabtop.protocol.messages import Request as Request
from collabtop.protocol.messages import kinds_of as kinds_of
from collabtop.protocol.setup import Setup as Setup
from collabtop.runlog.recorder import RewardRecorder as RewardRecorder
from collabtop.teams.remote.reports import ReportBuffer as ReportBuffer
from collabtop.teams.remote.reports import ReportOptions as ReportOptions
from collabtop.teams.remote.reports import ReportSink as ReportSink
