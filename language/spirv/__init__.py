"""triton.language.extra.spirv: what only this backend has."""

from . import libdevice

__all__ = ["libdevice"]
