"""How deep bounded checking gets in a minute, and how long proofs take.

    python tests/benchmarks/proofs.py              two minutes of bounded checking, then the proofs
    python tests/benchmarks/proofs.py --seconds 10

No peer does either for these models: Apalache, which checks TLA+ by Z3, is in no package registry that was at hand.
"""

from __future__ import annotations

import argparse
import time

from draincheck.explorer.proofs.symbolic import Symbolic
from draincheck.explorer.proofs.unrolling import Bounds, bounded_check, induction
from draincheck.explorer.verdicts.proofs import ANY, prove_endless
from draincheck.models.catalogue.profile import load_profile
from draincheck.properties.drain.cases import cases_of
from draincheck.properties.drain.safety import no_late_write
from draincheck.properties.small import reference_case
from draincheck.protocol.language.check import Check
from rich.console import Console
from rich.table import Table

PROFILE = "sglang-0.5.23-mooncake"


def checks() -> dict[str, Check]:
    """The models that are unrolled."""
    found = {"reference": reference_case().untimed.check}
    for scenario in ("abort", "failed-send"):
        found[f"{PROFILE} / {scenario}"] = cases_of(PROFILE, (scenario,), timer=False)[0].untimed.check
    return found


def unrolled(seconds: float) -> Table:
    """Depth reached, by bounded checking and by k-induction."""
    table = Table("model", "method", "property", "depth reached", "seconds", box=None)
    for name, check in checks().items():
        prop = next((each for each in check.properties if each is no_late_write), check.properties[0])
        symbolic = Symbolic(check.model)
        for method, ask in (("bounded checking", bounded_check), ("k-induction", induction)):
            found = ask(symbolic, prop, Bounds(1000, seconds))
            table.add_row(name, method, prop.name, str(found.depth), f"{found.seconds:.1f}")
    return table


def proved() -> Table:
    """Proofs in endless lives, with the time each takes."""
    table = Table("model", "prefill ranks", "release timer", "verdict", "seconds", box=None)
    profile = load_profile(PROFILE)
    for ranks in (1, 2, ANY):
        for late in (False, True):
            began = time.perf_counter()
            found = prove_endless(profile, ranks, late_timer=late)
            spent = time.perf_counter() - began
            table.add_row(found.model, str(ranks), "late" if late else "off", found.verdict, f"{spent:.1f}")
    return table


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each row of bounded checking")
    arguments = parser.parse_args()
    console = Console(width=140)
    console.print(proved())
    console.print(unrolled(arguments.seconds))


if __name__ == "__main__":
    main()
