"""What the tests share."""

from __future__ import annotations

import pathlib
from typing import Iterator

import pytest

import esker


@pytest.fixture
def directory(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory for a database."""
    return tmp_path / "db"


@pytest.fixture
def db(directory: pathlib.Path) -> Iterator[esker.Database]:
    """An open database."""
    with esker.open(directory) as db:
        yield db
