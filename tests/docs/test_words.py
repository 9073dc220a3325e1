"""Phrases that readers stumbled over stay off README.md and docs/: a pronoun before its noun, and the like.

Docstrings say what they are about, so that each can be read without the one before it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)

#: A phrase → what to write instead.
PHRASES = {
    r"(?:^|[.:|] )(?:Those|That) of\b": "begin with the noun",
    r"\bin place of\b": "instead of",
    r"\bof (?:yours|theirs|ours)\b": "your, their, our",
    r"\bwhere there (?:is|are) (?:one|none|no)\b": "if there is one, or name it",
    r"\b[Ww]hat goes from\b": "name what goes",
    r"\bbut for\b": "except for",
    r"\b(?:is|are) told of\b": "a message names it, a warning says it",
    r"\bonce an? (?:process|kernel|line|operation|driver|device|step|launch)\b": "once per",
    r"\b(?:one|row|line) an? (?:process|kernel|line|row|operation|driver|device|step|launch)\b": "one per",
    r"\bthe way between\b|'s way between\b": "the bandwidth between",
    r"\bmatrix products?\b": "matmul",
    r"\bcosts? the thread\b|\btook the thread\b": "the host thread",
    r"\b[Nn]or does it help\b": "name what does not help first",
    r"\bhas not\b (?!been\b|run\b|\w+ed\b)": "lacks, has no",
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_no_phrase_that_readers_stumbled_over(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`|<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"\n(?=[^\n#|-])", " ", prose)
    found = [
        (text[match.start() : match.end() + 40], instead)
        for phrase, instead in PHRASES.items()
        for match in re.finditer(phrase, text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "Those of a kernel are long.",
        "It takes 3 in place of 4.",
        "A buffer of yours.",
        "the driver, where there is one",
        "nothing, where there are none",
        "all but for the first",
        "Long kernels are told of.",
        "logged once a process",
        "the way between memory and registers",
        "a matrix product",
        "it took the thread 3 µs",
        "Nor does it help to wait.",
    ],
)
def test_such_a_phrase_is_found(text: str) -> None:
    assert any(re.search(phrase, text) for phrase in PHRASES)


#: How docstrings begin that are no more than the rest of another sentence: of what, as what, the same as what?
FRAGMENT = re.compile(r"(?:Of|As|Have|See|Both|The same)\b")
CODE = [path for folder in ("backend", "tools") for path in sorted((ROOT / folder).rglob("*.py"))]


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """The line and the docstring of each module, class and function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield node.body[0].lineno, text


def fragments(source: str) -> list[tuple[int, str]]:
    """The docstrings that begin as a fragment does."""
    return [(line, text.partition("\n")[0]) for line, text in docstrings(source) if FRAGMENT.match(text)]


def test_docstrings_are_not_the_rest_of_another_sentence() -> None:
    assert len(CODE) > 500
    found = {str(path.relative_to(ROOT)): found for path in CODE if (found := fragments(path.read_text("utf-8")))}
    assert found == {}


@pytest.mark.parametrize(
    "text", ["Of the loop over registers.", "As X's.", "Have modules do so.", "See Plan.", "The same for a store."]
)
def test_a_docstring_that_is_a_fragment_is_found(text: str) -> None:
    assert fragments(f'def f():\n    """{text}"""\n') == [(2, text)]
    assert fragments(f'def f():\n    """What it gives. {text}"""\n') == []
