"""What differs between the versions of Triton that this backend runs with, each difference once.

3.9 is the version that the patches are for. Stock Triton 3.8 takes the plugin, too: it is what Windows has.

| what | 3.9 | 3.8 |
| --- | --- | --- |
| whether products and sums are fused | `knobs.language.fp_fusion_enabled()` | `default_fp_fusion` alone |
| hints for caches in TTGIR (ttgir/operations/memory.py) | one attribute | two, with words of their own |

docs/windows.md has what 3.8's language lacks.
"""

from __future__ import annotations

from triton import knobs


def fp_fusion_enabled(requested: bool | None) -> bool:
    """Whether a product and a sum may become one operation. ``requested``: the launch option, None if not given."""
    language = knobs.language
    if hasattr(language, "fp_fusion_enabled"):
        return bool(language.fp_fusion_enabled(requested))
    return bool(language.default_fp_fusion if requested is None else requested)
