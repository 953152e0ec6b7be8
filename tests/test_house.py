"""House rules that a script can check: floors, no release in code, every file in the map, links and output."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("protocol", "models", "properties", "explorer")
SOURCES = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


def imported(path: Path) -> set[str]:
    """Top-level folders of ours that a file imports, relatively or by the installed name."""
    depth = len(path.relative_to(ROOT).parts) - 1
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level == depth + 1:
                found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("draincheck"):
            found.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {name.name.split(".")[1] for name in node.names if name.name.startswith("draincheck.")}
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    floor = path.relative_to(ROOT).parts[0]
    allowed = set(FLOORS[: FLOORS.index(floor) + 1])
    assert imported(path) <= allowed


def test_the_floor_test_sees_imports_of_both_kinds() -> None:
    assert imported(ROOT / "models" / "drain" / "closed.py") == {"protocol"}
    assert imported(ROOT / "properties" / "drain" / "cases.py") == {"models", "protocol"}
    assert imported(ROOT / "tests" / "oracle.py") == {"protocol"}  # by the installed name


def rooms_used(path: Path) -> set[str]:
    """The folders, with their floor, that a file imports from, its own left out."""
    here = path.relative_to(ROOT).parent.parts
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = (*here[: len(here) - node.level + 1], *filter(None, (node.module or "").split(".")))
            for target in [base] if base else []:
                module = ROOT.joinpath(*target).with_suffix(".py").exists()
                found.add("/".join(target[:-1] if module else target))
    return found - {"/".join(here)}


def test_no_room_needs_one_that_needs_it() -> None:
    """A room is a folder; one that another needs can be read without it."""
    rooms = nx.DiGraph((str(path.relative_to(ROOT).parent), used) for path in SOURCES for used in rooms_used(path))
    assert rooms.number_of_edges() > 40
    assert not list(nx.simple_cycles(rooms))


def code_without_text(path: Path) -> str:
    """The source without docstrings and comments: evidence may name releases, code may not."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = ""
    return ast.unparse(tree)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_release_in_code(path: Path) -> None:
    assert not re.search(r"0\.5\.\d\d|sglang", code_without_text(path), re.IGNORECASE)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_and_public_definition_has_a_docstring(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            nested = any(
                isinstance(outer, ast.FunctionDef) and node in ast.walk(outer) and outer is not node
                for outer in ast.walk(tree)
            )
            overload = any("overload" in ast.unparse(each) for each in node.decorator_list)
            inherited = node.name == "label"
            assert nested or overload or inherited or ast.get_docstring(node), f"{path.name}: {node.name}"


def test_the_map_names_every_file() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    files = [*SOURCES, *(ROOT / "tests").rglob("*.py")]
    missing = [
        str(path.relative_to(ROOT))
        for path in files
        if path.name != "__init__.py" and f"`{'/'.join(path.relative_to(ROOT).parts[1:])}`" not in text
    ]
    assert not missing


def test_links_in_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text("utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"
