"""The examples of docstrings and documents, and what is documented at all."""

from __future__ import annotations

import doctest
import inspect
import os
import pathlib
import re
from typing import Iterator

import pytest

import esker
import esker._errors
import esker._views
import esker.plyvel

CLASSES = [value for name in esker.__all__ if inspect.isclass(value := getattr(esker, name))]


def documented() -> Iterator[tuple[str, object]]:
    """Every public object by its name."""
    yield "esker", esker
    yield "esker.plyvel", esker.plyvel
    for module in (esker, esker.plyvel):
        for name in module.__all__:
            value = getattr(module, name)
            if not (inspect.isclass(value) or callable(value)):
                continue
            yield f"{module.__name__}.{name}", value
            for member, part in vars(value).items() if inspect.isclass(value) else ():
                if not member.startswith("_") and (callable(part) or inspect.isdatadescriptor(part)):
                    yield f"{module.__name__}.{name}.{member}", part


OBJECTS = dict(documented())


def test_everything_public_has_a_docstring() -> None:
    assert len(OBJECTS) > 150, len(OBJECTS)
    bare = [name for name, value in OBJECTS.items() if not getattr(value, "__doc__", None)]
    assert bare == []


def run(name: str, text: str) -> int:
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failed = runner.run(test, out=output.append).failed
    assert failed == 0, "".join(output)
    return len(test.examples)


def test_the_examples_of_docstrings() -> None:
    examples = sum(run(name, value.__doc__ or "") for name, value in OBJECTS.items())
    assert examples > 35, examples


DOCUMENTS = ["python/README.md", "doc/python.md", "doc/book/start-python.md"]


def snippets_of(text: str) -> Iterator[tuple[str, str]]:
    """The snippets of a document, and the block `text` behind each, which it prints; blocks `sh` may come between."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
    blocks = [(language, code) for language, code in found if language != "sh"]
    for (language, code), (following, printed) in zip(blocks, [*blocks[1:], ("", "")]):
        if language == "python":
            yield code, printed if following == "text" else ""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_snippets_of_documents(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = os.environ.get("ESKER_ROOT")
    if root is None:
        pytest.skip("ESKER_ROOT names no checkout")
    text = (pathlib.Path(root) / name).read_text()
    snippets = list(snippets_of(text))
    assert len(snippets) == text.count("```python\n") > 0
    monkeypatch.chdir(tmp_path)
    for index, (snippet, printed) in enumerate(snippets):
        directory = tmp_path / str(index)
        directory.mkdir()
        monkeypatch.chdir(directory)
        if ">>>" in snippet:
            run(f"{name} {index}", snippet)
        else:
            capsys.readouterr()
            exec(compile(snippet, f"{name} {index}", "exec"), {"__name__": "__main__"})
            assert capsys.readouterr().out == printed


def test_errors_are_all_exported() -> None:
    classes = {name for name, value in vars(esker._errors).items() if inspect.isclass(value)}
    assert classes == set(esker._errors.__all__)
    assert all(issubclass(getattr(esker, name), esker.Error) for name in esker._errors.__all__)
