"""What the tests of torch.compile share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Nothing that was compiled before is taken, and no compile workers are started. Inductor's configuration."""
    torch = pytest.importorskip("torch")
    import torch._inductor.config as inductor

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    with inductor.patch(compile_threads=1, fx_graph_cache=False):
        yield inductor
    torch._dynamo.reset()
