"""A site's policy: what its owner allows a coordinator to ask, in one run and over all runs."""

from collections.abc import Callable
from os import PathLike

import msgspec

from collabtop.algorithms.registry import available_algorithms, make_algorithm
from collabtop.errors import CollabtopError, FileError, InputError, ProtocolError, reason
from collabtop.privacy import NoiseScale, Privacy
from collabtop.protocol.messages import Ints, Request, kind_of
from collabtop.protocol.setup import Setup
from collabtop.teams.sites.frames import WhyDeclined
from collabtop.teams.sites.rehearsal import Rehearsal, shape_of
from collabtop.teams.sites.site_budget import OverBudget, SiteBudget
from collabtop.text_files import read_toml
from collabtop.validation import positive_number, whole_number, wrong_value


class SitePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a site's owner allows: written in a TOML file for `collabtop join --policy`, or in Python for `join`.

    With a policy, a site also declines every question that does not follow from the announced algorithm and its plan.

    >>> import collabtop as ct
    >>> ct.SitePolicy(algorithms=["collab-top-noniid"], min_batch=20, pulls_per_candidate=5_000).rounds is None
    True
    """

    algorithms: list[str] | None = None
    """The algorithms that may be used; default: all that announce their questions."""
    coordinators: list[str] | None = None
    """Names or addresses of machines that may coordinate; TLS ensures that they are who they claim to be."""
    rounds: int | None = None
    """The most questions that an agent answers in one run."""
    min_batch: int = 2
    """The smallest batch; if `join` is given a larger one, that counts."""
    questions: int | None = None
    """The most questions that the site answers in all runs together."""
    pulls_per_candidate: int | None = None
    """The most pulls of each candidate in all runs together."""
    privacy: Privacy | None = None
    """The least differential privacy of each run: noise is added even if the coordinator does not ask for any."""
    total_epsilon: float | None = None
    """The most epsilon of all runs together, at the delta of `privacy`."""
    labels: bool = True
    """Whether a hash of the candidates' labels may be sent, by which a coordinator checks that they match."""

    def __post_init__(self) -> None:
        for name in ("rounds", "min_batch", "questions", "pulls_per_candidate"):
            if getattr(self, name) is not None:
                whole_number(name, getattr(self, name), least=1)
        if self.total_epsilon is not None:
            positive_number("total_epsilon", self.total_epsilon)
            if self.privacy is None:
                raise InputError(
                    "total_epsilon only applies with privacy: add epsilon, delta and unit of each run",
                    argument="total_epsilon",
                )
            if self.total_epsilon < self.privacy.epsilon:
                needed = f"each run spends {self.privacy.epsilon:g}, so no run would be allowed"
                raise wrong_value("total_epsilon", self.total_epsilon, needed)
        if self.pulls_per_candidate is not None and self.pulls_per_candidate < self.min_batch:
            needed = f"a batch of at least {self.min_batch} is needed, so no run would be allowed"
            raise wrong_value("pulls_per_candidate", self.pulls_per_candidate, needed)
        for algorithm in self.algorithms or ():
            if algorithm not in available_algorithms():
                known = ", ".join(available_algorithms())
                raise wrong_value("algorithms", algorithm, f"only these are known: {known}")
        for name in ("algorithms", "coordinators"):
            if getattr(self, name) == []:
                raise InputError(
                    f"{name} is empty, so no run would be allowed: name one or leave it out", argument=name
                )

    @property
    def has_budget(self) -> bool:
        """Whether anything is limited over all runs together."""
        return (self.questions, self.pulls_per_candidate, self.total_epsilon) != (None, None, None)

    @property
    def total_rho(self) -> float | None:
        """The most zCDP of all runs together."""
        if self.privacy is None or self.total_epsilon is None:
            return None
        return msgspec.structs.replace(self.privacy, epsilon=self.total_epsilon).rho

    def check_coordinator(self, host: str) -> None:
        """Raise `InputError` if this machine may not coordinate."""
        if self.coordinators is not None and host.strip("[]") not in self.coordinators:
            allowed = ", ".join(self.coordinators)
            raise wrong_value("address", host, f"the policy allows these coordinators only: {allowed}")


def read_site_policy(path: str | PathLike[str]) -> SitePolicy:
    r"""Read a site's policy from a TOML file; unknown keys and wrong values are rejected.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "policy.toml"
    >>> _ = path.write_text('algorithms = ["uniform"]\nmin_batch = 20\n')
    >>> read_site_policy(path).min_batch
    20
    """
    try:
        return msgspec.convert(read_toml(path), SitePolicy)
    except OSError as error:
        raise FileError(f"policy {str(path)!r}: {reason(error)}") from None
    except (msgspec.ValidationError, CollabtopError) as error:
        keys = ", ".join(field.name for field in msgspec.structs.fields(SitePolicy))
        hint = f" (the keys are {keys})" if "unknown field" in str(error) else ""
        raise FileError(f"policy {str(path)!r}: {error}{hint}") from None
    except ValueError as error:
        raise FileError(f"policy {str(path)!r}: invalid TOML: {error}") from None


class PolicyError(ProtocolError):
    """A request or a run that the site's policy does not allow; `why` is the code that the coordinator is sent."""

    def __init__(self, why: WhyDeclined, message: str) -> None:
        super().__init__(message)
        self.why: WhyDeclined = why


def noise_of(setup: Setup, privacy: Privacy | None, agents: int) -> NoiseScale | None:
    """The noise that a site with so many agents adds: what its owner demands and what the coordinator asks for.

    The agents of a site may use the same examples.
    """
    n, horizon = setup.problem.n, setup.problem.horizon
    announced = None if setup.privacy is None else NoiseScale.of(setup.privacy, n, horizon, agents)
    return announced if privacy is None else NoiseScale.of(privacy, n, horizon, agents).at_least(announced)


class PolicyGuard:
    """Enforces a site's policy in one run: for the run as announced, each request, and each draw."""

    def __init__(
        self,
        policy: SitePolicy,
        setup: Setup,
        run_id: str,
        rehearsal: Rehearsal,
        budget: SiteBudget | None,
        label: Callable[[int], str],
        agents: int = 1,
    ) -> None:
        self._policy, self._setup, self._run_id = policy, setup, run_id
        self._budget, self._label = budget, label
        self.noise = noise_of(setup, policy.privacy, agents)
        """The noise that the site adds in this run, if any."""
        self._check_run(rehearsal)
        self._charge_privacy()
        algorithm = make_algorithm(setup.algorithm, **setup.options)
        self._shapes = rehearsal.shapes if algorithm.fixed_schedule else None
        self._kinds = {kind_of(kind) for kind in algorithm.messages}

    def _check_run(self, rehearsal: Rehearsal) -> None:
        name, allowed = self._setup.algorithm, self._policy.algorithms
        if name not in (available_algorithms() if allowed is None else allowed):
            raise PolicyError("policy", "the policy does not allow this algorithm")
        try:
            algorithm = make_algorithm(name, **self._setup.options)
        except CollabtopError:  # its text may quote the peer
            raise PolicyError("policy", f"the coordinator announced invalid options of {name}") from None
        if self.noise is not None and not algorithm.private:
            raise PolicyError("policy", f"the policy has privacy, but the messages of {name} have no noise")
        if algorithm.fixed_schedule and not rehearsal.complete:
            raise PolicyError(
                "plan", f"the plan of {name} for this run cannot be computed here: it is invalid or too large"
            )
        if not algorithm.fixed_schedule and not algorithm.messages:
            raise PolicyError("plan", f"{name} does not announce its questions")
        planned = max(map(len, rehearsal.shapes.values()), default=0)
        if algorithm.fixed_schedule and self._policy.rounds is not None and planned > self._policy.rounds:
            raise PolicyError(
                "policy", f"the plan has {planned} questions, but the policy allows {self._policy.rounds}"
            )

    def _charge_privacy(self) -> None:
        """Count what the run spends of the privacy of all runs, before anything is pulled."""
        privacy = self._policy.privacy
        if privacy is None or self.noise is None or self._budget is None:
            return
        try:
            self._budget.charge_privacy(self._run_id, privacy.unit, self.noise.rho)
        except OverBudget as error:
            raise PolicyError("budget", str(error)) from None

    def check_request(self, request: Request, answered: int) -> None:
        """Raise `PolicyError` if the agent, after `answered` answers in this run, should not answer this request."""
        if self._policy.rounds is not None and answered >= self._policy.rounds:
            raise PolicyError("policy", f"the policy allows {self._policy.rounds} questions per run")
        if self._shapes is None:
            kinds = [kind_of(type(message)) for message in request.messages]
            if not self._kinds.issuperset(kinds):
                raise PolicyError("plan", f"{self._setup.algorithm} does not ask {', '.join(kinds)}")
        else:
            planned = self._shapes[request.agent]
            if answered >= len(planned) or shape_of(request) != planned[answered]:
                raise PolicyError(
                    "plan", f"question {answered + 1} does not follow from {self._setup.algorithm} and its plan"
                )
        if self._budget is not None:
            try:
                self._budget.charge_question(self._run_id, request.agent, request.number)
            except OverBudget as error:
                raise PolicyError("budget", str(error)) from None

    def check_draw(self, agent: int, first: int, arms: Ints, times: Ints) -> None:
        """Count the pulls that an agent is about to make; raise `PolicyError` if the budget does not allow them."""
        if self._budget is None:
            return
        pulls = times.tolist() * (len(arms) if len(times) == 1 else 1)
        try:
            self._budget.charge_pulls(self._run_id, agent, first, list(map(self._label, arms.tolist())), pulls)
        except OverBudget as error:
            raise PolicyError("budget", str(error)) from None
