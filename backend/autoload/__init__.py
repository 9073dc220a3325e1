"""What torch calls at the end of its own import (its entry point group ``torch.backends``).

The wheel installs this package under a second name, outside of triton, because importing triton would make ``import
torch`` slower by half a second. It imports triton only when something needs it:

- ``torch.device("spirv")`` is known at once. The operations are registered when a device is first used.
- torch's compiler learns of Vulkan devices when it is imported itself.

Without triton, or with a torch older than OLDEST_TORCH, it does nothing. It steps aside, so that only the second point
holds, if another backend has or may take torch's only place for an out-of-tree device (PrivateUse1), or if torch has an
accelerator of its own that is there (``others.py``), unless the device is asked for by itself. The choice of SPIR-V for
kernels does not ask for it.

``entry.py`` decides; ``private_use.py`` takes the place.

Inside of triton, this package is the other one under a second name, where that is installed: no module of it is loaded
twice.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

#: The name under which the wheel installs this package outside of triton.
OUTSIDE = "triton_spirv_autoload"


def _be_the_one_outside() -> None:
    """Give this package's name, and those of its modules, to the package outside of triton and its modules."""
    outside = sys.modules[__name__] = import_module(OUTSIDE)
    for module in iter_modules(outside.__path__):
        sys.modules[f"{__name__}.{module.name}"] = import_module(f"{OUTSIDE}.{module.name}")


if __name__ != OUTSIDE and find_spec(OUTSIDE) is not None:
    _be_the_one_outside()
else:
    from .compiler_hook import teach_compiler
    from .entry import autoload
    from .placeholder import NAME
    from .versions import OLDEST_TORCH, is_too_old, release

    __all__ = ["NAME", "OLDEST_TORCH", "autoload", "is_too_old", "release", "teach_compiler"]
