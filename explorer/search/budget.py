"""How much memory there is for a process, and how much it has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # a system without such limits
    resource = None

UNKNOWN = 4 << 30
"""Bytes that are taken to be there where the system does not tell."""
GROUP_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
"""Of each version of control groups: the limit, what is used, and what of that the system takes back if need be."""


def available_memory(root: Path = Path("/")) -> int:
    """Bytes that this process can still take without harm.

    The least of three: what the machine can give without swapping, which is more than what is free; what is left in
    each control group (a container, a unit of systemd) that the process is in, at any height; and what is left of its
    own address space (`ulimit -v`). 4 GiB where the system does not tell. `root` is where /proc and /sys are.
    """
    return max(0, min(_of_machine(root), *_of_groups(root), available_address_space(root)))


def available_address_space(root: Path = Path("/")) -> int:
    """Bytes that are left of the address space; as many as can be if it has no limit."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0] if resource else -1
    if resource is None or limit == resource.RLIM_INFINITY:
        return 1 << 62
    return max(0, limit - _pages(root)[0])


def process_memory(root: Path = Path("/")) -> int:
    """Bytes of memory that this process occupies; 0 where the system does not tell."""
    return _pages(root)[1]


def _pages(root: Path) -> tuple[int, int]:
    """Bytes of address space, and of memory, that this process has."""
    try:
        size, resident = (root / "proc/self/statm").read_text("ascii").split()[:2]
    except (ValueError, OSError):
        return 0, 0
    return int(size) * os.sysconf("SC_PAGE_SIZE"), int(resident) * os.sysconf("SC_PAGE_SIZE")


def _of_machine(root: Path) -> int:
    found = _numbers(root / "proc/meminfo")
    if "MemAvailable:" in found:
        return found["MemAvailable:"] << 10
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return UNKNOWN


def _of_groups(root: Path) -> Iterator[int]:
    """What is left in each control group that this process is in, and in those around it.

    A container may see the name that its group has outside: then only the group at the top of what it sees is there,
    which is its own.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except (ValueError, OSError):
        return
    for line in lines:
        _, controllers, name = line.split(":", 2)
        version = 1 if controllers else 2
        if version == 1 and "memory" not in controllers.split(","):
            continue
        for top in ("memory",) if version == 1 else ("", "unified"):
            folder = root / "sys/fs/cgroup" / top
            yield from _left(folder, version)
            for part in Path(name).parts[1:]:
                folder /= part
                yield from _left(folder, version)


def _left(group: Path, version: int) -> Iterator[int]:
    """What is left in one control group, if it is there and has a limit."""
    limit, usage, reclaimable = GROUP_FILES[version]
    try:
        allowed, used = (int((group / name).read_text("ascii")) for name in (limit, usage))
    except (ValueError, OSError):  # without a limit it says "max"
        return
    yield max(0, allowed - used + _numbers(group / "memory.stat").get(reclaimable, 0))


def _numbers(path: Path) -> dict[str, int]:
    """The numbers of a file of lines that are a name, a number, and perhaps a unit."""
    try:
        fields = [line.split() for line in path.read_text("ascii").splitlines()]
        return {each[0]: int(each[1]) for each in fields if len(each) > 1}
    except (ValueError, OSError):
        return {}
