"""What differs between the versions of Triton that this backend runs with, each difference once.

3.9 is the version that the patches are for. Stock Triton 3.8 takes the plugin, too: it is what Windows has. What 3.9
warns of for 3.10 is in the last column; until no release with it is taken, its rows and rules stay.

| what | 3.8 | 3.9 | 3.10 |
| --- | --- | --- | --- |
| whether multiply-adds are fused | `default_fp_fusion` alone | `knobs.language.fp_fusion_enabled()` | off by default |
| hints for caches in TTGIR (ttgir/operations/memory.py) | two, with words of their own | one attribute | as 3.9 |
| `tl.cat(can_reorder=True)`, which is tt.cat | there | there, with a warning | gone |
| `tl.reshape(can_reorder=True)` | there | there, with a warning | gone; the pass combine still gives it to sums |

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
