"""Makes the helpers beside the tests importable, and keeps the tests out of the user's store of results."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of results for each test, empty when it begins."""
    folder = tmp_path_factory.mktemp("store")
    monkeypatch.setenv("DRAINCHECK_STORE", str(folder))
    return folder
