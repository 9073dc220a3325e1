"""What is said of CUDA tensors whose memory cannot be shared, without CUDA."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from triton.backends.spirv.runtime import cuda


def _tensor(start: int, bytes_: int) -> Any:
    return SimpleNamespace(untyped_storage=lambda: SimpleNamespace(data_ptr=lambda: start, nbytes=lambda: bytes_))


def test_a_tensor_in_several_chunks_is_told_of_the_pool_and_the_copies() -> None:
    """Not of expandable segments, which it is in."""
    sharing = object.__new__(cuda.CudaSharing)
    sharing._check_end(_tensor(4096, 8192), 4096 + 8192)
    with pytest.raises(cuda.NotShareable) as raised:
        sharing._check_end(_tensor(4096, 8193), 4096 + 8192)
    message = str(raised.value)
    assert message.startswith("the CUDA tensor's 8193 bytes lie in several chunks of an expandable segment")
    assert "use_mem_pool(triton.backends.spirv.runtime.cuda.mem_pool())" in message
    assert "TRITON_SPIRV_CUDA=staged" in message
    assert "take expandable_segments out of PYTORCH_CUDA_ALLOC_CONF" in message
    assert "expandable_segments:True" not in message


def test_another_vulkan_driver_takes_no_cuda_tensors() -> None:
    context: Any = SimpleNamespace(shares_memory=False, device=SimpleNamespace(name="Mesa"))
    with pytest.raises(cuda.NotShareable, match=r"Mesa: CUDA tensors can only be passed on NVIDIA's .*tensor.cpu\(\)"):
        cuda.CudaSharing(context)


def test_a_way_that_is_not_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted, way in ((None, cuda.SHARE), ("", cuda.SHARE), ("share", cuda.SHARE), ("staged", cuda.STAGED)):
        monkeypatch.delenv("TRITON_SPIRV_CUDA", raising=False)
        if wanted is not None:
            monkeypatch.setenv("TRITON_SPIRV_CUDA", wanted)
        assert cuda.way() == way
    monkeypatch.setenv("TRITON_SPIRV_CUDA", "imported")
    with pytest.raises(ValueError, match="'imported' is neither share nor staged"):
        cuda.way()
