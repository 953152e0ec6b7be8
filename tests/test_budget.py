"""How much memory there is, on machines and in containers of all kinds; and that running out of it is said."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draincheck.explorer.search import liveness, partition
from draincheck.explorer.search.budget import UNKNOWN, available_address_space, available_memory, process_memory
from draincheck.explorer.search.partition import Partition
from draincheck.explorer.search.search import search
from draincheck.explorer.verdicts.verify import Verdict, exit_code, verify
from draincheck.properties.drain.cases import cases_of
from draincheck.properties.small import reference_case

GIB = 1 << 30
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what is read are files of Linux")


def machine(root: Path, **files: str) -> Path:
    """A system with 24 GiB, of which 3 are free and 20 can be had; files by paths with __ for /."""
    written = {
        "proc__meminfo": f"MemTotal: {24 << 20} kB\nMemFree: {3 << 20} kB\nMemAvailable: {20 << 20} kB\n",
        **files,
    }
    for name, text in written.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "ascii")
    return root


def group(version: int, folder: str, limit: str, used: int, cache: int = 0) -> dict[str, str]:
    """The files of a control group."""
    names = [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")][version == 1]
    stat = f"anon 1\n{'total_' if version == 1 else ''}inactive_file {cache}\n"
    where = f"sys__fs__cgroup__{'memory__' if version == 1 else ''}{folder}"
    return {
        f"{where}{name}": text for name, text in zip((*names, "memory.stat"), (limit, str(used), stat), strict=True)
    }


V1, V2 = {"proc__self__cgroup": "5:cpu,memory:/a/b\n3:cpuset:/x\n0::/\n"}, {"proc__self__cgroup": "0::/a/b\n"}
SYSTEMS: dict[str, tuple[dict[str, str], int]] = {
    "a full page cache": ({}, 20 * GIB),
    "version 2, its own group": ({**V2, **group(2, "a__b__", str(4 * GIB), GIB)}, 3 * GIB),
    "version 2, a group around it": (
        {**V2, **group(2, "a__", str(6 * GIB), GIB), **group(2, "a__b__", "max", GIB)},
        5 * GIB,
    ),
    "version 2, a container": ({**V2, **group(2, "", str(2 * GIB), GIB)}, GIB),
    "version 2, its cache is taken back": ({**V2, **group(2, "a__b__", str(4 * GIB), 4 * GIB, 3 * GIB)}, 3 * GIB),
    "version 2 beside version 1": ({**V2, **group(2, "unified__a__", str(4 * GIB), GIB)}, 3 * GIB),
    "version 1, its own group": ({**V1, **group(1, "a__b__", str(4 * GIB), GIB)}, 3 * GIB),
    "version 1, a container": ({**V1, **group(1, "", str(4 * GIB), 2 * GIB, GIB)}, 3 * GIB),
    "version 1, no limit": ({**V1, **group(1, "", str(2**63 - 4096), GIB)}, 20 * GIB),
    "more used than allowed": ({**V2, **group(2, "a__b__", str(GIB), 2 * GIB)}, 0),
    "another group": ({**V2, **group(2, "other__", str(GIB), 0)}, 20 * GIB),
    "damaged files": ({"proc__self__cgroup": "0::/a\n", **group(2, "a__", "x", 0)}, 20 * GIB),
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_available(system: str, tmp_path: Path) -> None:
    files, expected = SYSTEMS[system]
    assert available_memory(machine(tmp_path, **files)) == expected


def test_a_system_that_tells_nothing(tmp_path: Path) -> None:
    assert available_memory(tmp_path) > 0
    assert process_memory(tmp_path) == 0
    assert UNKNOWN > 0


@LINUX
def test_the_address_space_is_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    root = machine(tmp_path, proc__self__statm=f"{GIB // page} 100 1 1 1 1 1\n")
    assert available_address_space(root) > 1 << 60 and process_memory(root) == 100 * page
    monkeypatch.setattr(
        resource, "getrlimit", lambda which: (4 * GIB, 4 * GIB) if which == resource.RLIMIT_AS else (0, 0)
    )
    assert available_address_space(root) == available_memory(root) == 3 * GIB


@LINUX
def test_this_process_has_memory() -> None:
    assert 1 << 20 < process_memory() < available_memory() + process_memory()


# Running out.


@pytest.mark.parametrize("limit", [96, 160, 288, 512])
def test_a_partition_keeps_to_its_memory(limit: int) -> None:
    """All that it holds, at its fullest, and when its table of slots is made larger."""
    part = Partition(2, 1, 4, limit << 20)
    while True:
        room = min(part.capacity, int((1 << part._bits) * partition.LOAD), part._room(part._slots.nbytes))
        before = part._slots.nbytes
        part.numbers[1] = room  # as if so many states were in it
        used = room * (8 * part.width + 4) + part._beside
        assert used + before <= limit << 20
        if not part._can_grow():
            break
        assert used + 3 * before <= limit << 20
        part._slots, part._bits = np.zeros(2 << part._bits, np.uint64), part._bits + 1


def test_memory_that_cannot_be_had_is_undetermined(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> Any:
        raise MemoryError

    (case,) = cases_of("sglang-0.5.23-mooncake", ["abort"])
    monkeypatch.setattr(liveness, "_region", nothing)
    row = verify(case)
    assert row.verdict is Verdict.UNDETERMINED and "memory ran out" in row.reasons[0]
    monkeypatch.setattr(Partition, "advance", nothing)
    assert search(reference_case().untimed.check).stopped == "memory ran out"
    monkeypatch.setattr(Partition, "_reserve", nothing)
    row = verify(case)
    assert row.reasons == ("memory ran out",) and exit_code([row]) == 3


def test_a_table_that_cannot_grow_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    real = np.zeros

    def zeros(shape: Any, *rest: Any) -> Any:
        if isinstance(shape, int) and shape > 1 << partition.FIRST_SLOT_BITS:
            raise MemoryError
        return real(shape, *rest)

    class Numpy:
        """Numpy for this module alone: the compiler must not meet another `zeros` than its own."""

        def __getattr__(self, name: str) -> Any:
            return zeros if name == "zeros" else getattr(np, name)

    monkeypatch.setattr(partition, "np", Numpy())
    row = verify(reference_case())
    assert row.verdict is Verdict.UNDETERMINED and row.run.states > 0 and "memory limit of" in row.reasons[0]


MEASURED = """
import resource, sys
from draincheck.explorer.commands.cli import main
try:
    main(sys.argv[1:])
finally:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""
LARGE = ("verify", "sglang-0.5.23-mooncake", "--scenario", "abort", "--prefill-ranks", "2", "--no-store", "--json")


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("mebibytes", [384, 512, 1024, 2048])
def test_the_limit_bounds_the_process(mebibytes: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", MEASURED, *LARGE, "--jobs", "1", "--max-memory", str(mebibytes / 1024)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 3
    assert f"memory limit of {mebibytes:,} MiB reached" in json.loads(ran.stdout)["rows"][0]["reasons"][0]
    assert int(ran.stderr.split()[-1]) <= mebibytes << 10


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("mebibytes", [64, 200, 400, 700, 1000, 1500, 2500, 4000])
def test_a_small_address_space_is_undetermined(mebibytes: int, jobs: str) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))

    program = "from draincheck.explorer.commands import start; start.main()"
    asked = ("verify", "sglang-0.5.21-mooncake", *LARGE[1:], "--max-states", "3000000", "--jobs", jobs)
    ran = subprocess.run([sys.executable, "-c", program, *asked], capture_output=True, text=True, preexec_fn=limit)
    assert ran.returncode in (1, 3) and "Traceback" not in ran.stderr and ran.stderr.count("\n") <= 1
