"""docs/conformance.md has a row for each field, action, knob and setting of the model, and for nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from draincheck.models.catalogue.profile import KNOBS, MODELLED
from draincheck.models.drain.features import FEATURES
from draincheck.protocol import roles
from draincheck.protocol.language import Action
from draincheck.protocol.language.channel import ChannelSpec
from draincheck.protocol.language.state import FieldSpec
from draincheck.protocol.roles.knobs import Setting
from draincheck.protocol.roles.state import Drain

PAGE = Path(__file__).parents[1] / "docs" / "conformance.md"
NOT_MODELLED = "not modelled yet"
NO_ACTION = "no action: whether"
NO_COUNTERPART = "no counterpart"

Rows = dict[str, list[str]]


def rows(text: str, section: str) -> Rows:
    """The table rows of a section with its subsections: each name in a first cell, and the cells after it."""
    match = re.search(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"{PAGE.name} has no section {section}"
    found: Rows = {}
    for line in match[1].splitlines():
        if not line.lstrip().startswith("|"):
            continue
        first, *others = (cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")))
        for name in names_in(first):
            assert name not in found, f"{section}: {name} has two rows"
            found[name] = others
    return found


def names_in(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def declared() -> Iterator[tuple[str, bool]]:
    """Names of the fields and channels of the protocol's state, and whether they are ghosts."""
    for base in Drain.__mro__:
        for name, spec in vars(base).items():
            if isinstance(spec, FieldSpec):
                yield name, spec.ghost
            elif isinstance(spec, ChannelSpec):
                yield name, False


MODULES = {each.name: import_module(f"{roles.__name__}.{each.name}") for each in iter_modules(roles.__path__)}


def actions() -> set[str]:
    return {value.name for module in MODULES.values() for value in vars(module).values() if isinstance(value, Action)}


class Sources:
    """The text of the roles: which knobs an action reads, in its own body and in the functions that it uses."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.functions: dict[tuple[str, str], ast.FunctionDef] = {}
        self.imported: dict[tuple[str, str], tuple[str, str]] = {}
        self.shorthands: dict[str, set[str]] = {}
        for module, text in texts.items():
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef):
                    self.functions[module, node.name] = node
                elif isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
                    self.imported |= {(module, name.name): (node.module, name.name) for name in node.names}
                elif isinstance(node, ast.ClassDef):
                    self.shorthands |= {
                        each.name: attributes(each) for each in node.body if isinstance(each, ast.FunctionDef)
                    }

    def knobs(self, spot: tuple[str, str], seen: frozenset[tuple[str, str]] = frozenset()) -> set[str]:
        """Names of the knobs that a function reads; a property of the knobs stands for those it is made of."""
        spot = self.imported.get(spot, spot)
        if spot in seen or spot not in self.functions:
            return set()
        function = self.functions[spot]
        found = attributes(function)
        found |= {name for read in found for name in self.shorthands.get(read, set())}
        for node in ast.walk(function):
            if isinstance(node, ast.Name):
                found |= self.knobs((spot[0], node.id), seen | {spot})
        return found & MODELLED


def attributes(function: ast.FunctionDef) -> set[str]:
    return {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}


def readers() -> dict[str, set[str]]:
    """For each knob that the model reads, the actions that read it."""
    sources = Sources({name: Path(str(module.__file__)).read_text("utf-8") for name, module in MODULES.items()})
    found: dict[str, set[str]] = {name: set() for name in MODELLED}
    for spot in sources.functions:
        if isinstance(getattr(MODULES[spot[0]], spot[1], None), Action):
            for knob in sources.knobs(spot):
                found[knob].add(spot[1])
    return found


FIELDS = dict(declared())
EXPECTED = {
    "State fields": set(FIELDS),
    "Actions": actions(),
    "Knobs": set(KNOBS),
    "Topology and features": {each.name for each in fields(Setting)},
}


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text("utf-8")


@pytest.mark.parametrize("section", EXPECTED)
def test_table_is_complete_and_names_nothing_else(page: str, section: str) -> None:
    assert EXPECTED[section], "the model declares nothing: the test looks in the wrong place"
    found = set(rows(page, section))
    missing, stray = sorted(EXPECTED[section] - found), sorted(found - EXPECTED[section])
    assert not missing and not stray, f"missing from the table: {missing}; only there: {stray}"


@pytest.mark.parametrize("section", EXPECTED)
def test_every_cell_but_the_remark_is_filled(page: str, section: str) -> None:
    assert not [name for name, cells in rows(page, section).items() if not cells or not cells[0]]


def test_every_action_names_its_thread(page: str) -> None:
    assert not [name for name, cells in rows(page, "Actions").items() if len(cells) < 2 or not cells[1]]


def test_ghosts_have_no_counterpart(page: str) -> None:
    table = rows(page, "State fields")
    for name, ghost in FIELDS.items():
        if ghost:
            assert table[name][0].startswith(NO_COUNTERPART), name


def test_knobs_name_the_actions_that_read_them(page: str) -> None:
    reading = readers()
    assert not MODELLED & set(FIELDS), "a knob and a field have one name: the source does not tell which is read"
    for name, cells in rows(page, "Knobs").items():
        if name in MODELLED:
            assert reading[name], f"{name} is in Knobs, and no action reads it"
            assert set(names_in(cells[0])) == reading[name], name
        else:
            says = NO_ACTION if name in {feature.knob for feature in FEATURES} else NOT_MODELLED
            assert cells[0].startswith(says), f"{name} is not in Knobs: its row must say so"


def test_knobs_are_found_through_helpers_properties_and_imports() -> None:
    sources = Sources(
        {
            "knobs": "class Knobs:\n    def holds(self):\n        return self.hold_enabled and self.hold_causes",
            "near": "from .far import helper\ndef act(s):\n    helper(s)\n    again(s)\ndef again(s):\n    act(s)",
            "far": "def helper(s):\n    return s.knobs.decode.holds, s.knobs.prefill.checksum, s.poll",
        }
    )
    assert sources.knobs(("near", "act")) == {"hold_enabled", "hold_causes", "checksum"}
    assert sources.knobs(("near", "missing")) == set()


def test_merged_steps_name_actions(page: str) -> None:
    merged = re.search(r"^## Merged steps\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
    assert merged
    cells = [line.split("|")[1] for line in merged[1].splitlines() if line.startswith("| `")]
    assert cells
    assert {name for cell in cells for name in names_in(cell)} <= EXPECTED["Actions"]


def test_rows_are_read_from_their_section_only() -> None:
    table = "| knob | read by |\n|---|---|\n| `one` | `post` \\| x |\n| `stray`, `two` | - |\n"
    text = f"## Knobs\n\n{table}\n## Next\n| `no` | - |\n"
    assert rows(text, "Knobs") == {"one": ["`post` \\| x"], "stray": ["-"], "two": ["-"]}
