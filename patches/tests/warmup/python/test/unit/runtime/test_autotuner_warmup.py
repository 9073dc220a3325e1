import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources


def test_warmup_leaves_out_what_has_no_room():
    @triton.autotune(configs=[triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=[])
    @triton.jit
    def kernel(out, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), 1.0)

    asked = []

    def warmup(*args, BLOCK, **kwargs):
        asked.append(BLOCK)
        if BLOCK == 64:
            raise OutOfResources(2, 1, "shared memory")
        return "compiled"

    kernel.fn.warmup = warmup
    assert kernel.warmup(tl.float32, grid=(1,)) == ["compiled"]
    assert asked == [32, 64]
