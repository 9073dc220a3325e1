import errno
import os
import tempfile
import warnings

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def kernel(out):
    tl.store(out, 1.0)


def compiled():
    return triton.compile(ASTSource(kernel, {"out": "*fp32"}), target=GPUTarget("cuda", 80, 32))


def broken(path, how):
    if how == "file":
        path.write_text("")
    elif how == "link":
        path.symlink_to(path.parent / "nowhere" / "else")
    return "" if how == "empty" else str(path)


@pytest.mark.parametrize("how", ["file", "link", "empty", "full"])
def test_a_folder_that_cannot_be_used_is_said_once(how, tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.cache, "dir", broken(tmp_path / "cache", how))
    if how == "full":

        def full(**_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.warns(UserWarning, match="TRITON_CACHE_DIR") as said:
        first = compiled()
        assert compiled().asm["ptx"] == first.asm["ptx"]
    assert len([one for one in said if "Triton cannot keep kernels" in str(one.message)]) == 1


def test_a_kernel_of_a_folder_that_is_full_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path))
    compiled()
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: pytest.fail("it has the kernel"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        compiled()
    assert os.listdir(tmp_path)


def test_a_disk_that_fills_later(tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path))
    first, replace, writes = compiled(), os.replace, []
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")

    def full(source, target):
        writes.append(target)
        if len(writes) > 1 and str(target).startswith(str(tmp_path)):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match="No space left on device.*TRITON_CACHE_DIR") as said:
        assert compiled().asm["ptx"] == first.asm["ptx"]
        assert compiled().asm["ptx"] == first.asm["ptx"]
    assert len([one for one in said if "Triton cannot keep kernels" in str(one.message)]) == 1
    assert not [name for _, names, _ in os.walk(tmp_path) for name in names if name.startswith("tmp.")]


def test_a_full_folder_of_dumps_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(triton.knobs.cache, "dump_dir", str(tmp_path))
    manager = triton.runtime.cache.FileCacheManager("key", dump=True)

    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device", target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=f"No space left on device.*{tmp_path}"):
        manager.put("text", "kernel.ttir")
