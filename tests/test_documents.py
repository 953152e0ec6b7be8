"""Programs in the documents run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from draincheck.models.drain.scenario import SCENARIOS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("docs/language.md", ("doubles grants: worker", "lock_comes_back is broken: pending for ever after 2 steps")),
        ("README.md", ("abort SAFE",)),
    ],
)
def test_programs_run(page: str, said: tuple[str, ...], tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    path = tmp_path / "program.py"
    path.write_text(program, "utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for words in said:
        assert words in done.stdout


def test_every_scenario_is_described() -> None:
    text = (ROOT / "docs" / "scenarios.md").read_text("utf-8")
    for scenario in SCENARIOS.values():
        assert f"| `{scenario.name}` | {scenario.sentence} |" in text, scenario.name
