import os

import pytest
import triton

FOLDERS = ("_C", "backends", "compiler", "language", "runtime")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    from triton.runtime import known_key

    root = tmp_path / "triton"
    for folder in FOLDERS:
        (root / folder / "inner").mkdir(parents=True)
        (root / folder / "inner" / "module.py").write_text("x = 1")
    monkeypatch.setattr(known_key, "_ROOT", str(root))
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path / "cache"))
    return root


def computed_again():
    """Whether a new process would compute the key."""
    calls = []

    def compute():
        calls.append(None)
        return "the key"

    assert triton.runtime.known_key.known(compute)() == "the key"
    return bool(calls)


def test_the_key_is_computed_once(tree):
    assert computed_again()
    assert not computed_again()
    assert not computed_again()


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_change_of_a_file_gives_another(tree, folder):
    assert computed_again()
    path = tree / folder / "inner" / "module.py"
    before = path.stat()
    path.write_text("x = 2")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as unpacking an archive does
    assert computed_again()
    assert not computed_again()


def test_a_new_file_gives_another(tree):
    assert computed_again()
    (tree / "language" / "more.py").write_text("")
    assert computed_again()
    (tree / "language" / "notes.txt").write_text("")  # no module
    assert not computed_again()


def test_the_key_of_this_triton_is_what_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path))
    kept = triton.runtime.cache.triton_key.__wrapped__
    computed = kept.__wrapped__()
    assert kept() == computed and kept() == computed
