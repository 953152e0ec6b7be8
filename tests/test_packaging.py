"""What is shipped: a version, a source distribution whose tests run, lower bounds that are enough, a current picture.

Last result of the slow test: with Python 3.13 all passed with the oldest requirements, but for what was wrong in that
distribution itself (a docstring, the map, a bound of this file), and is mended; 111 s of computing.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import tarfile
import tomllib
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import draincheck
import pytest
from click.testing import CliRunner
from draincheck.explorer.commands.cli import main

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PYTHONS = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", each)]
SHORT = ("test_house.py", "test_channels.py", "test_renderings.py", "test_packaging.py")
"""Files of tests that together use the helpers beside the tests, the golden files, the documents and the engines."""


def test_the_version_is_the_installed_one() -> None:
    assert draincheck.__version__ == version("draincheck") == PROJECT["version"]
    assert CliRunner().invoke(main, ["--version"]).stdout.split()[-1] == draincheck.__version__


def requirements() -> list[str]:
    """All requirements, those of the tests included."""
    optional = [each for several in PROJECT["optional-dependencies"].values() for each in several]
    return [each for each in [*PROJECT["dependencies"], *optional] if not each.startswith("draincheck[")]


def test_every_requirement_has_a_lower_bound_and_nothing_else() -> None:
    assert all(re.fullmatch(r"[a-z0-9-]+(\[[a-z]+\])?>=[0-9.]+", each) for each in requirements())


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run([str(each) for each in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("python", PYTHONS)
def test_the_tests_of_the_source_distribution_run_with_the_oldest_requirements(python: str, tmp_path: Path) -> None:
    interpreter = shutil.which(f"python{python}")
    if not interpreter or subprocess.run([interpreter, "-V"], capture_output=True, check=False).returncode:
        pytest.skip(f"there is no Python {python} here")
    run(interpreter, "-m", "venv", "venv", cwd=tmp_path)
    own = tmp_path / "venv" / "bin" / "python"
    run(own, "-m", "pip", "install", "--quiet", "build", cwd=tmp_path)
    run(own, "-m", "build", "--sdist", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = (each for each in tmp_path.glob("draincheck-*") if each.is_dir())
    beside = {each.relative_to(ROOT) for each in (ROOT / "tests").rglob("*") if "__pycache__" not in each.parts}
    assert beside <= {each.relative_to(unpacked) for each in unpacked.rglob("*")}
    oldest = [re.sub(r"\[.*\]", "", each).replace(">=", "==") for each in requirements()]
    (tmp_path / "oldest.txt").write_text("\n".join(oldest), "utf-8")
    run(own, "-m", "pip", "install", "--quiet", "-c", tmp_path / "oldest.txt", ".[test]", cwd=unpacked)
    said = run(own, "-m", "pytest", "-q", "-n", "1", *(f"tests/{each}" for each in SHORT), cwd=unpacked)
    assert re.search(r"\d+ passed", said)


PICTURE = ROOT / "docs" / "counterexample.svg"


def words(found: list[str]) -> Counter[str]:
    return Counter(html.unescape(each).replace("\xa0", " ").strip() for each in found)


def save_the_trace_of_the_readme(folder: Path) -> Path:
    saved = CliRunner().invoke(main, ["verify", "sglang-0.5.18-mooncake", "--scenario", "abort", "--save", str(folder)])
    assert saved.exit_code == 1, saved.output
    (path,) = folder.glob("*no_late_write*.trace.json")
    return path


def test_the_picture_of_the_readme_has_the_words_of_the_trace_that_is_found(tmp_path: Path) -> None:
    """Graphviz is not needed. To draw it anew, do what the README says below the table of verdicts."""
    source = CliRunner().invoke(main, ["show", str(save_the_trace_of_the_readme(tmp_path)), "--format", "dot"]).stdout
    drawn = words(re.findall(r"<FONT[^>]*>(?:<[BI]>)*([^<]*)", source))
    assert drawn.total() > 100
    assert drawn == words(re.findall(r"<text[^>]*>([^<]*)</text>", PICTURE.read_text("utf-8")))


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
def test_the_picture_of_the_readme_is_what_the_command_draws(tmp_path: Path) -> None:
    """But for positions, which depend on the fonts of the machine."""
    trace, output = save_the_trace_of_the_readme(tmp_path), tmp_path / "counterexample.svg"
    done = CliRunner().invoke(main, ["show", str(trace), "--format", "svg", "--output", str(output)])
    assert done.exit_code == 0, done.output
    new, old = (re.findall(r">([^<]*)<", path.read_text("utf-8")) for path in (output, PICTURE))
    assert new == old
