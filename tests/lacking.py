"""Refusals of kernels that are right: the device lacks a feature, such as float64."""

import re

_FEATURE = re.compile(r"\(feature (\w+)\)")


def lacked(error: BaseException) -> str:
    """The feature (a key of capabilities.FEATURES) for which a kernel is refused and that the current device lacks; ""
    where the error is another one. A refusal for a feature that is there is no right one."""
    from triton.backends.spirv.capabilities import FEATURES, Capabilities
    from triton.backends.spirv.errors import UnsupportedOperation
    from triton.runtime import driver

    found = _FEATURE.search(str(error))
    if found is None or found[1] not in FEATURES or not isinstance(error, (UnsupportedOperation, NotImplementedError)):
        return ""
    return "" if Capabilities.parse(driver.active.get_current_target().arch).has(found[1]) else found[1]
