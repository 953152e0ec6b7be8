"""What is kept between runs: entries that are whole, of the code that runs, and of nobody else."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from draincheck.explorer.kept import entries, loop_cache
from draincheck.explorer.kept.entries import UNFINISHED_SECONDS, Entries
from draincheck.explorer.kept.loop_cache import compiled_loop
from draincheck.explorer.kept.writing import WritingError, folder_for_output, write_output
from draincheck.protocol.loaded import FLOORS

ROOT = Path(__file__).parents[1]
KEY = "0123456789abcdef" * 4
LIMIT = 1000


def files_of(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() or path.is_symlink())


@pytest.fixture
def kept(tmp_path: Path) -> Entries:
    return Entries(tmp_path / "kept", "loop", "bin", LIMIT)


# Entries.


def test_an_entry_is_what_was_written(kept: Entries) -> None:
    assert kept.read(KEY) is None
    kept.write(KEY, b"some\nbytes\0")
    assert kept.read(KEY) == b"some\nbytes\0" and not kept.trouble
    kept.write(KEY, b"others")
    assert kept.read(KEY) == b"others"


def flipped(position: int) -> Callable[[bytes], bytes]:
    return lambda content: content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content[:20],
        lambda content: content + b" ",
        lambda content: content * 50,
        lambda content: b"\n" + content,
        lambda content: content.replace(b"loop", b"result"),
        lambda content: content.replace(b"0123", b"3210"),
        lambda content: content.replace(b'"version":1', b'"version":2'),
        *(flipped(at) for at in (0, 15, 60, 150, 200, -2)),
    ],
)
def test_a_damaged_entry_counts_as_not_there(kept: Entries, damage: Callable[[bytes], bytes]) -> None:
    kept.write(KEY, b"a" * 100)
    content = kept.path(KEY).read_bytes()
    kept.path(KEY).write_bytes(damage(content))
    assert kept.read(KEY) is None
    kept.write(KEY, b"b")
    assert kept.read(KEY) == b"b"


def test_what_is_no_regular_file_is_no_entry(kept: Entries, tmp_path: Path) -> None:
    kept.write(KEY, b"a")
    for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path), os.mkdir):
        kept.path(KEY).unlink()
        make(kept.path(KEY))
        assert kept.read(KEY) is None
        if kept.path(KEY).is_dir():
            kept.path(KEY).rmdir()
            kept.path(KEY).touch()
        kept.write(KEY, b"a")
        assert kept.read(KEY) == b"a"


def test_an_entry_leads_nowhere_else(kept: Entries, tmp_path: Path) -> None:
    """Whoever can write into a store can put a link there; no other file is written through it."""
    kept.write(KEY, b"a")
    kept.path(KEY).unlink()
    (tmp_path / "other").write_text("before", "utf-8")
    kept.path(KEY).symlink_to(tmp_path / "other")
    kept.write(KEY, b"b")
    assert (tmp_path / "other").read_text("utf-8") == "before" and kept.read(KEY) == b"b"


def test_an_entry_of_another_name_is_none(kept: Entries) -> None:
    kept.write(KEY, b"a")
    shutil.copy(kept.path(KEY), kept.path(KEY[::-1]))
    assert kept.read(KEY[::-1]) is None


def test_what_died_in_the_midst_is_removed(kept: Entries, tmp_path: Path) -> None:
    kept.write(KEY, b"a")
    folder = kept.path(KEY).parent
    old, older, young, foreign = (folder / name for name in (".ab.tmp", f"{KEY}.bin.77.tmp", ".cd.tmp", "notes.tmp"))
    for each in (old, older, young, foreign):
        each.touch()
    for each in (old, older, foreign):
        os.utime(each, (0, each.stat().st_mtime - UNFINISHED_SECONDS - 1))
    again = Entries(tmp_path / "kept", "loop", "bin", LIMIT)
    again.write(KEY, b"a")
    assert files_of(folder) == sorted([kept.path(KEY), young, foreign])


def test_entries_of_other_code_make_room_and_are_never_read(kept: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.write(KEY, b"a")
    (folder,) = {path.parent for path in files_of(kept.path(KEY).parents[1])}
    monkeypatch.setattr(entries, "fingerprint", lambda: KEY[::-1])
    assert kept.read(KEY) is None
    other = Entries(folder.parent, "loop", "bin", LIMIT)
    other.write(KEY, b"b")
    assert not folder.exists() and other.read(KEY) == b"b"


# The code that runs.

EDITED = """
import sys
from pathlib import Path
from draincheck.models.catalogue import profile  # first of all, and only this
edited, root = Path(sys.argv[1]), Path(sys.argv[2])
edit = lambda: edited.write_text(edited.read_text("utf-8") + "# another line" + chr(10), "utf-8")
if sys.argv[3] == "before":
    edit()
from draincheck.explorer.kept.entries import Entries
from draincheck.explorer.kept.identity import key_of
from draincheck.properties.small import reference_case
keys = [key_of(reference_case())]
kept = Entries(root, "result", "json", 1000)
kept.write("0" * 64, b"1")
if sys.argv[3] == "after":
    edit()
    keys.append(key_of(reference_case()))
    assert kept.read("0" * 64) is None
    kept.write("1" * 64, b"1")
print(len([each for each in keys if each]), len(list(root.rglob("*.json"))), kept.trouble)
"""


@pytest.mark.parametrize(
    ("when", "edited", "said"),
    [
        ("never", "protocol/roles/nic.py", "1 1 \n"),
        ("before", "models/catalogue/profile.py", "0 0 the code of draincheck was edited after it was loaded"),
        ("before", "explorer/search/search.py", "0 0 the code of draincheck was edited after it was loaded"),
        ("after", "protocol/roles/nic.py", "1 1 the code of draincheck was edited after it was loaded"),
    ],
)
def test_code_that_was_edited_after_it_was_loaded_keeps_nothing(
    tmp_path: Path, when: str, edited: str, said: str
) -> None:
    """In an open session, what a file says is not what runs."""
    for floor in FLOORS:
        shutil.copytree(ROOT / floor, tmp_path / "draincheck" / floor, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "draincheck" / "__init__.py").touch()  # goes before whatever is installed
    command = [sys.executable, "-c", EDITED, tmp_path / "draincheck" / edited, tmp_path / "store", when]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(said)


# Compiled loops.


@pytest.fixture
def loops(kept: Entries, monkeypatch: pytest.MonkeyPatch) -> Entries:
    """A cache of loops of its own, with room for them."""
    own = Entries(kept.path(KEY).parents[1], "loop", "bin", loop_cache.MAX_BYTES)
    monkeypatch.setattr(loop_cache, "LOOPS", own)
    return own


def twice(number: int) -> int:
    return 2 * number


def thrice(number: int) -> int:
    return 3 * number


def reads(loops: Entries, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the cache had what was asked, each time."""
    had: list[bool] = []
    real = loops.read

    def read(key: str) -> Any:
        content = real(key)
        had.append(content is not None)
        return content

    monkeypatch.setattr(loops, "read", read)
    return had


def test_compiled_loops_are_loaded_again_unless_they_are_damaged(
    loops: Entries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    had = reads(loops, monkeypatch)
    assert compiled_loop(twice)(21) == 42
    assert compiled_loop(twice)(21) == 42
    assert had == [False, True]
    (path,) = files_of(tmp_path)
    content = path.read_bytes()
    middle = len(content) // 2
    for damage in (content[:middle], b"", flipped(middle)(content), flipped(-100)(content), content[:-1]):
        path.write_bytes(damage)
        assert compiled_loop(twice)(21) == 42
        assert path.read_bytes() != damage  # it was compiled anew
    assert had == [False, True, *[False] * 5]


def test_a_loop_under_the_name_of_another_is_not_loaded(loops: Entries, tmp_path: Path) -> None:
    assert compiled_loop(twice)(21) == 42
    (one,) = files_of(tmp_path)
    assert compiled_loop(thrice)(14) == 42
    (other,) = set(files_of(tmp_path)) - {one}
    shutil.copy(one, other)
    assert compiled_loop(thrice)(14) == 42


def test_loops_of_other_code_are_not_loaded(loops: Entries, monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant of any file may be compiled into a loop."""
    had = reads(loops, monkeypatch)
    compiled_loop(twice)(21)
    monkeypatch.setattr(entries, "fingerprint", lambda: KEY)
    assert compiled_loop(twice)(21) == 42
    assert had == [False, False]


def test_loops_that_cannot_be_kept_are_compiled_all_the_same(loops: Entries, tmp_path: Path) -> None:
    (tmp_path / "kept").touch()
    assert compiled_loop(twice)(21) == 42
    assert loops.trouble.startswith(f"{tmp_path / 'kept'}: cannot be written: ") and "\n" not in loops.trouble


# Files written whole.


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("before", "utf-8")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WritingError, match="file: cannot be written: No space left on device"):
        write_output(path, b"after")
    assert path.read_text("utf-8") == "before" and files_of(tmp_path) == [path]


def test_links_are_followed_and_pipes_are_written_to(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_output(tmp_path / "link", b"a")
    write_output(tmp_path / "link", b"b")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"b"
    reading, writing = os.pipe()
    write_output(Path(f"/dev/fd/{writing}"), b"c")
    assert os.read(reading, 10) == b"c"
    os.close(reading)
    os.close(writing)
    with pytest.raises(WritingError, match="No space left"):
        write_output(Path("/dev/full"), b"d")


def test_a_folder_is_tried_without_a_trace(tmp_path: Path) -> None:
    folder_for_output(tmp_path / "deep" / "down")
    assert (tmp_path / "deep" / "down").is_dir() and not files_of(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(WritingError, match="cannot be written"):
        folder_for_output(tmp_path / "file" / "down")


def test_a_folder_in_the_place_of_one_entry_keeps_only_that_one_out(kept: Entries) -> None:
    other = "b" * 64
    kept.path(KEY).mkdir(parents=True)
    kept.write(KEY, b"lost")
    kept.write(other, b"kept")
    assert kept.read(KEY) is None and kept.read(other) == b"kept"
    assert kept.trouble == f"{kept.path(KEY)}: a folder is where an entry belongs; remove it"
