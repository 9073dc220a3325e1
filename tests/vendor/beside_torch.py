"""What the wheel promises beside any torch, in an environment that holds both and nothing else of this checkout.

    pip install triton-…whl numpy && pip install --no-deps torch==2.10.0
    python tests/vendor/beside_torch.py

torch is imported, compiles for the CPU, and gives its CPU tensors to kernels. With a torch that is new enough the
device ``spirv`` is there, eagerly and compiled; with an older one torch is as it would be without the wheel, and
``doctor`` says what it lacks. Prints a line for each; the exit status is 1 if one does not hold.
"""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable

import torch
import triton
import triton.language as tl
from triton.backends.spirv.autoload.versions import OLDEST_TORCH, is_too_old

HAS_DEVICE = not is_too_old(torch.__version__)


@triton.jit
def _add(x, y, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def _scaled(x: torch.Tensor) -> torch.Tensor:
    return (x * 2 + 1).sum(-1)


def compiles_for_the_cpu() -> None:
    """Inductor's C++."""
    x = torch.rand(7, 33)
    torch.testing.assert_close(torch.compile(_scaled)(x), _scaled(x))


def kernels_take_its_tensors(device: str = "cpu") -> None:
    """Of a size that is not a multiple of the block."""
    x, y = torch.rand(1000).to(device), torch.rand(1000).to(device)
    out = torch.empty_like(x)
    _add[(4,)](x, y, out, 1000, BLOCK=256)
    torch.testing.assert_close(out.cpu(), x.cpu() + y.cpu())


def has_the_device() -> None:
    """Copies, kernels, a training step."""
    kernels_take_its_tensors("spirv")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).to("spirv")
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.rand(5, 3)
    loss = model(x.to("spirv")).square().mean()
    loss.backward()
    optimizer.step()
    torch.testing.assert_close(_scaled(x.to("spirv")).cpu(), _scaled(x))


def compiles_for_the_device() -> None:
    """Inductor's Triton code, forward and backward."""
    x = torch.rand(7, 33)
    there = x.to("spirv").requires_grad_()
    result = torch.compile(lambda x: _scaled(x).tanh())(there)
    result.sum().backward()
    here = x.clone().requires_grad_()
    _scaled(here).tanh().sum().backward()
    torch.testing.assert_close(result.cpu(), _scaled(x).tanh())
    assert there.grad is not None and here.grad is not None
    torch.testing.assert_close(there.grad.cpu(), here.grad)


def is_as_it_was() -> None:
    """No device of that name; asking for it says which torch has it."""
    from triton.backends.spirv.torch import registration

    assert not hasattr(torch, "spirv")
    try:
        registration.register()
    except RuntimeError as error:
        assert f"needs {OLDEST_TORCH} or newer" in str(error), error
    else:
        raise AssertionError("the device was registered")


def doctor_tells() -> None:
    """Its status is 0 in both cases; of an older torch it says what it lacks."""
    done = subprocess.run([sys.executable, "-m", "triton.backends.spirv.cli", "doctor"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert HAS_DEVICE or OLDEST_TORCH in done.stdout, done.stdout


CHECKS: list[Callable[[], None]] = [compiles_for_the_cpu, kernels_take_its_tensors, doctor_tells]
CHECKS += [has_the_device, compiles_for_the_device] if HAS_DEVICE else [is_as_it_was]


def main() -> int:
    """Runs them."""
    failed = 0
    for check in CHECKS:
        said = check.__name__.replace("_", " ")
        try:
            check()
        except Exception:
            failed += 1
            said += " NOT\n" + traceback.format_exc()
        print(f"torch {torch.__version__} {said}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
