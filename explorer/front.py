"""The front door: what `import draincheck as dc` gives.

A model is written with `State`, `action` and their like, asked with `Check`, and answered by `verify`, `search`, `walk`
and `prove`. Releases are asked by the names of their profiles.
"""

from __future__ import annotations

from ..models.catalogue.profile import Profile, catalogue, load_profile
from ..models.drain.scenario import SCENARIOS, Scenario
from ..properties.case import Case, Question
from ..properties.drain.cases import cases_of
from ..properties.drain.given_back import all_given_back
from ..properties.own import is_own, own_cases
from ..properties.small import reference_case
from ..protocol.language import (
    NONE,
    UNBOUNDED,
    DeclarationError,
    DraincheckError,
    Faults,
    Index,
    Message,
    State,
    action,
    between,
    channel,
    field,
    flag,
    ghost,
    ghost_code,
    maybe,
    part,
    require,
    upto,
)
from ..protocol.language.check import Check
from ..protocol.language.model import Model, SlotView
from ..protocol.language.property import (
    Kind,
    Probe,
    Promise,
    Property,
    claim,
    invariant,
    probe,
    promise,
)
from .commands.simulation_report import Walked
from .commands.simulation_report import walk as _walk
from .proofs.unrolling import Bounds
from .search.search import Exploration, Limits, search
from .traces.storage import check_of, load
from .traces.trace import Trace, fault_in, promise_trace, rerun
from .verdicts.proofs import Method, Result, prove_bounded
from .verdicts.verify import Finding, Row, Verdict
from .verdicts.verify import verify as _decide
from .walks.swarm import Plan

__all__ = [
    "NONE",
    "UNBOUNDED",
    "Bounds",
    "Case",
    "Check",
    "DeclarationError",
    "DraincheckError",
    "Exploration",
    "Faults",
    "Finding",
    "Index",
    "Kind",
    "Limits",
    "Message",
    "Method",
    "Model",
    "Plan",
    "Probe",
    "Profile",
    "Promise",
    "Property",
    "Result",
    "Row",
    "Scenario",
    "SlotView",
    "State",
    "Trace",
    "Verdict",
    "Walked",
    "action",
    "all_given_back",
    "between",
    "case",
    "cases_of",
    "channel",
    "check_of",
    "claim",
    "fault_in",
    "field",
    "flag",
    "ghost",
    "ghost_code",
    "invariant",
    "load",
    "load_profile",
    "maybe",
    "own_cases",
    "part",
    "probe",
    "profiles",
    "promise",
    "promise_trace",
    "prove",
    "reference_case",
    "require",
    "rerun",
    "scenarios",
    "search",
    "upto",
    "verify",
    "walk",
]


def profiles() -> list[str]:
    """The names of the releases with their backends, for `verify`.

    >>> "sglang" in profiles()[0]
    True
    """
    return list(catalogue())


def scenarios() -> dict[str, str]:
    """The names of the scenarios, each with what may happen in it.

    >>> scenarios()["abort"]
    'the client goes while writes are in flight'
    """
    return {name: each.sentence for name, each in SCENARIOS.items()}


def case(asked: str | Check | Case, scenario: str = "", *, timer: bool = True, **sizes: int) -> Case:
    """The one case that is meant: of a profile or TOML file in a scenario (default: abort), of a Python file with a
    model in a check, of "reference", or of a check. Raises DraincheckError where there are several.

    `timer=False` leaves the release timer of a profile off. Sizes are those of Scenario (rooms, ranks, decode_ranks,
    chunks, slots), or, of a Python file, numbers by index type.
    """
    if isinstance(asked, Case):
        return asked
    if isinstance(asked, Check):
        probes = tuple(each.name for each in asked.probes)
        return Case(asked.model.name, scenario or "-", Question(asked, probes, {}), None, probes[0] if probes else "")
    if asked == "reference":
        return reference_case()
    if not is_own(asked):
        return cases_of(asked, [scenario or "abort"], timer=timer, **sizes)[0]
    found = own_cases(asked, [scenario] if scenario else [], sizes)
    if len(found) > 1:
        raise DraincheckError(f"{asked} has several checks; name one: {', '.join(each.scenario for each in found)}")
    return found[0]


def verify(
    asked: str | Check | Case,
    scenario: str = "",
    *,
    timer: bool = True,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    **sizes: int,
) -> Row:
    """The verdict, by exhaustive search, with the shortest run that shows it. What is asked is as for `case`.

    >>> row = verify("sglang-0.5.18-mooncake", "abort")
    >>> str(row.verdict), row.subject, len(row.trace)
    ('CORRUPTS', 'no_late_write', 17)
    """
    return _decide(case(asked, scenario, timer=timer, **sizes), limits)


def walk(asked: str | Check | Case, scenario: str = "", *, plan: Plan = Plan(seconds=10), **sizes: int) -> Walked:  # noqa: B008 - frozen
    """Random walks, where there are too many states for `verify`: what they find is true, and they decide nothing else.

    >>> found = walk("sglang-0.5.18-mooncake", "abort", plan=Plan(steps=2**18))
    >>> str(found.findings[0].verdict)
    'CORRUPTS'
    """
    chosen = case(asked, scenario, timer=False, **sizes)
    return _walk(chosen.profile, chosen.scenario, chosen.untimed, Verdict.CORRUPTS, plan, assumed=chosen.assumed)


def prove(
    asked: str | Check | Case,
    scenario: str = "",
    *,
    method: Method = Method.K_INDUCTION,
    bounds: Bounds = Bounds(20, 60),  # noqa: B008 - frozen
    **sizes: int,
) -> list[Result]:
    """What Z3 proves of each property of a model, without bounds in time. Proofs by lemmas: `draincheck prove`.

    >>> [str(each.verdict) for each in prove("reference", method=Method.BMC, bounds=Bounds(2))]
    ['UNDETERMINED']
    """
    question = case(asked, scenario, timer=False, **sizes).untimed
    return prove_bounded(question, question.check.properties, method, bounds)
