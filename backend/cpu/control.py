"""Blocks, selections and loops: what lanes do together, and what some of them do under a mask."""

from __future__ import annotations

from collections.abc import Sequence

from ..spirv import opcodes as op
from ..spirv.grammar import opcodes
from .array_order import in_groups
from .atomic_instructions import make_kept
from .code import literal
from .decoded_module import BasicBlock, ModuleInstruction
from .delayed_updates import ends_delay
from .divergence import Key, Loop
from .errors import Untranslatable
from .loads_and_stores import passes_over
from .registry import RULES
from .translation import Translation
from .waiting import polls, wait
from .watching import count_instructions
from .whole_rounds import Bound, WholeRounds

#: What a selection that lanes part at may do under a mask without a branch around it: loads, stores, and what has no
#: effect. So many instructions of it; beyond that a branch costs less than what it spares.
_UNDER_MASK = frozenset(
    ["OpLoad", "OpStore", "OpAccessChain"] + [f"Op{name}" for name, code in opcodes().items() if code in op.PURE]
)
_MOST_UNDER_MASK = 64

#: A condition that never holds, of which LLVM does not know that.
NEVER = "%never"

#: Lines of a block of straight code, which LLVM takes more than linear time for. A scaled product of 128×256×256 in
#: e2m1 takes 6.0 s with 1,000, 5.8 s with 300 and 13.5 s in whole blocks.
_LONGEST = 1000


class Control:
    """Translates the blocks of a program, in the order of its structure (section 2.11)."""

    def __init__(self, t: Translation) -> None:
        self._t = t
        self._program = t.program
        self._whole = WholeRounds(t.program, t.divergence)

    def run(self) -> None:
        """Emits the whole function body."""
        self._chain(self._program.first, 0)

    # -- straight code -------------------------------------------------------------------------------------------
    def _chain(self, label: int, stop: int, inside: Loop | None = None) -> int:
        """Emits blocks from ``label`` on until one that goes to ``stop``, or that leaves the loop ``inside``; gives the
        label of that one, 0 if the function ends."""
        while True:
            block = self._program.blocks[label]
            if block.following and (inside is None or label != inside.header):
                self._loop(block)
                label = block.merge
                continue
            self._body(block)
            end = block.end
            assert end is not None
            if end.name == "OpReturn":
                if self._t.mask is not None:
                    raise Untranslatable(self._program.name, "a return that not all lanes reach", self._t.where(end))
                self._t.code.jump("end")
                return 0
            if end.name == "OpBranch":
                target = end.operands[0]
                if target == stop:
                    return label
                self._single(self._program.blocks[target], label)
                label = target
            elif end.name == "OpBranchConditional" and block.merge and not block.following:
                if self._t.keys(end.operands[0])[0] in self._t.facts:
                    self._taken(block, end.operands[1])
                else:
                    self._selection(block)
                label = block.merge
            elif end.name == "OpBranchConditional" and inside is not None and inside.merge in block.targets:
                return label
            else:
                raise Untranslatable(self._program.name, f"{end.name} outside of structured control flow")

    def _body(self, block: BasicBlock) -> None:
        t = self._t
        count_instructions(t, block)
        kept = block.label in t.delayed.kept
        if block.independent:
            kept = make_kept(t, room=True)
        elif kept and block.following:
            kept = make_kept(t)
        for item in in_groups(self._program, block.body):
            t.code.cut(_LONGEST, NEVER, "end")
            if kept and ends_delay(self._program, item):
                kept = make_kept(t)
            self._one(item)
            kept |= item.name.startswith("OpAtomic") and bool(t.delayed.most)

    def _one(self, item: ModuleInstruction) -> None:
        t = self._t
        rule = RULES.get(item.name)
        if rule is None:
            raise Untranslatable(self._program.name, item.name, t.where(item))
        t.code.place = t.lines.place(item.line)
        rule(t, item)
        if item.result in t.neighbours.roots:
            t.compare_lanes(item.result)

    def _single(self, block: BasicBlock, source: int) -> None:
        """Phis of a block that is reached from one only."""
        self._t.values.update(self._texts(block, source))

    def _keys_from(self, phi: ModuleInstruction, source: int) -> list[Key]:
        return self._t.keys(_from(phi, source))

    # -- phis ----------------------------------------------------------------------------------------------------
    def _texts(self, block: BasicBlock, source: int) -> dict[Key, str]:
        """The values that a block's phis get from another one, as they are there."""
        found = {}
        for phi in block.phis:
            for key, value in zip(self._t.keys(phi.result), self._keys_from(phi, source), strict=True):
                shape = self._t.shape(key)
                if shape is None:
                    found[key] = self._t.vector(value)
                elif not shape.known:
                    found[key] = self._t.scalar(value)
        return found

    def _type(self, key: Key) -> str:
        return self._t.vector_type(key) if self._t.shape(key) is None else self._t.type_name(key)

    # -- selections ----------------------------------------------------------------------------------------------
    def _selection(self, block: BasicBlock) -> None:
        assert block.end is not None
        condition = self._t.keys(block.end.operands[0])[0]
        shape = self._t.shape(condition)
        if shape is not None and shape.uniform:
            self._uniform_selection(block, self._t.scalar(condition))
        else:
            self._parted_selection(block, condition)

    def _taken(self, block: BasicBlock, side: int) -> None:
        """The side of a selection that all lanes are known to take."""
        last = block.label if side == block.merge else self._chain(side, block.merge)
        self._single(self._program.blocks[block.merge], last)

    def _uniform_selection(self, block: BasicBlock, condition: str) -> None:
        """A branch that all lanes take."""
        code = self._t.code
        assert block.end is not None
        merge, sides = block.merge, block.end.operands[1:3]
        after = code.name("merge")
        names = [after if side == merge else code.name("side") for side in sides]
        merged = self._program.blocks[merge]
        incoming: list[tuple[dict[Key, str], str]] = []
        if merge in sides:
            incoming.append((self._texts(merged, block.label), code.block))
        code.branch(condition, *names)
        for side, name in zip(sides, names, strict=True):
            if side == merge:
                continue
            code.label(name)
            with code.scope():
                last = self._chain(side, merge)
                if last:
                    incoming.append((self._texts(merged, last), code.block))
                    code.jump(after)
        code.label(after)
        if not incoming:
            code.do("unreachable")
            return
        self._merge(merged, incoming)

    def _merge(self, merged: BasicBlock, incoming: Sequence[tuple[dict[Key, str], str]]) -> None:
        for key in incoming[0][0]:
            pairs = [(texts[key], place) for texts, place in incoming]
            self._t.values[key] = self._t.code.phi(self._type(key), pairs)

    def _parted_selection(self, block: BasicBlock, condition: Key) -> None:
        """A selection whose sides some lanes take."""
        t = self._t
        assert block.end is not None
        merge, (true, false) = block.merge, block.end.operands[1:3]
        merged = self._program.blocks[merge]
        chosen = t.vector(condition)
        if false == merge and self._fits_under_mask(true, merge):
            self._masked(block, true, chosen)
            return
        outer = t.mask
        found: list[dict[Key, str]] = []
        for side, holds in ((true, True), (false, False)):
            if side == merge:
                found.append(self._vectors(merged, block.label))
                continue
            active = chosen if holds else t.code.emit(f"xor {t.mask_type} {chosen}, splat (i1 true)")
            found.append(self._side(side, merge, t.both(outer, active)))
            t.mask = outer
        for key in found[0]:
            one, other = found[0][key], found[1][key]
            type_ = t.vector_type(key)
            t.values[key] = t.code.emit(f"select {t.mask_type} {chosen}, {type_} {one}, {type_} {other}")

    def _vectors(self, merged: BasicBlock, source: int) -> dict[Key, str]:
        """The vectors that _texts() gives, for phis where lanes come from several sides. All give the same scalars."""
        texts = self._texts(merged, source)
        vectors = {key: text for key, text in texts.items() if self._t.shape(key) is None}
        self._t.values.update({key: text for key, text in texts.items() if key not in vectors})
        return vectors

    def _side(self, side: int, merge: int, mask: str) -> dict[Key, str]:
        """One side of such a selection: passed over where no lane takes it. Gives what its lanes bring to the merge."""
        t, code = self._t, self._t.code
        begin, after = code.name("some"), code.name("past")
        here = code.block
        code.branch(t.any_of(mask), begin, after)
        code.label(begin)
        t.mask = mask
        with code.scope():
            last = self._chain(side, merge)
            if not last:
                raise Untranslatable(self._program.name, "a return that not all lanes reach")
            texts = self._vectors(self._program.blocks[merge], last)
            end = code.block
            code.jump(after)
        code.label(after)
        return {key: code.phi(t.vector_type(key), [(text, end), ("poison", here)]) for key, text in texts.items()}

    def _fits_under_mask(self, side: int, merge: int) -> bool:
        block = self._program.blocks[side]
        assert block.end is not None
        return (
            block.targets == (merge,)
            and len(block.body) <= _MOST_UNDER_MASK
            and all(item.name in _UNDER_MASK for item in block.body)
        )

    def _masked(self, block: BasicBlock, side: int, chosen: str) -> None:
        """A selection of loads and stores alone: they are done under a mask. Hosts without instructions for that try
        first whether all lanes are active."""
        t, code, outer = self._t, self._t.code, self._t.mask
        merged, arm = self._program.blocks[block.merge], self._program.blocks[side]
        mask = t.both(outer, chosen)
        loads = {
            item.result for item in arm.body if item.name == "OpLoad" and t.program.type(item.result).kind != "bool"
        }
        sources = [_from(phi, side) for phi in merged.phis]
        for phi, source in zip(merged.phis, sources, strict=True):
            if outer is None and source in loads and sources.count(source) == 1:
                t.otherwise[source] = _from(phi, block.label)
        accesses = any(item.name in ("OpLoad", "OpStore") for item in arm.body)
        here, passed = code.block, ""
        if t.host.masks or not accesses:
            default = self._vectors(merged, block.label)
            if accesses and mask is not None and passes_over(t, arm.body):
                some, passed = code.name("some"), code.name("past")
                here = code.block
                code.branch(t.any_of(mask), some, passed)
                code.label(some)
            found = self._under(arm, mask, merged)
        else:
            found, default = self._tried(arm, mask, merged, block.label)
        results = {}
        for phi, source in zip(merged.phis, sources, strict=True):
            for key in t.keys(phi.result):
                if key not in found:
                    continue
                type_, results[key] = t.vector_type(key), found[key]
                if source not in t.otherwise or t.shape(t.keys(source)[0]) is not None:  # else the load has chosen
                    results[key] = code.emit(
                        f"select {t.mask_type} {chosen}, {type_} {found[key]}, {type_} {default[key]}"
                    )
        if passed:
            end = code.block
            code.jump(passed)
            code.label(passed)
            for key, text in results.items():
                results[key] = code.phi(t.vector_type(key), [(text, end), (default[key], here)])
        t.values.update(results)

    def _under(self, arm: BasicBlock, mask: str | None, merged: BasicBlock) -> dict[Key, str]:
        """Emits a block under a mask; gives what its lanes bring to the merge."""
        t, outer = self._t, self._t.mask
        t.mask = mask
        with t.code.scope():
            self._body(arm)
            found = self._vectors(merged, arm.label)
        t.mask = outer
        return found

    def _tried(
        self, arm: BasicBlock, mask: str, merged: BasicBlock, source: int
    ) -> tuple[dict[Key, str], dict[Key, str]]:
        t, code = self._t, self._t.code
        default = self._vectors(merged, source)
        fast, slow, after = code.name("all"), code.name("part"), code.name("after")
        code.branch(t.all_of(mask), fast, slow)
        sides = []
        for name, active in ((fast, None), (slow, mask)):
            code.label(name)
            sides.append((self._under(arm, active, merged), code.block))
            code.jump(after)
        code.label(after)
        found = {
            key: code.phi(t.vector_type(key), [(texts[key], place) for texts, place in sides]) for key in sides[0][0]
        }
        return found, default

    # -- loops ---------------------------------------------------------------------------------------------------
    def _loop(self, header: BasicBlock) -> None:
        t, code = self._t, self._t.code
        if header.independent and header.label in t.delayed.kept:
            make_kept(t)
        loop = t.divergence.loops[header.label]
        outer = t.mask
        source = (
            next(label for phi in header.phis for label in phi.operands[1::2] if label not in loop.blocks)
            if header.phis
            else 0
        )
        initial = self._texts(header, source) if header.phis else {}
        before, begin, after = code.block, code.name("loop"), code.name("left")
        code.jump(begin)
        code.label(begin)
        phis = {key: code.phi(self._type(key), [(text, before)]) for key, text in initial.items()}
        t.values.update(phis)
        turn = code.phi("i32", [("0", before)]) if polls(t.program, loop.blocks) else ""
        active = ""
        kept: dict[Key, str] = {}
        if loop.divergent:
            active = t.mask = code.phi(t.mask_type, [(t.active(), before)])
            kept = {
                key: code.phi(t.vector_type(key), [("poison", before)])
                for value in loop.left
                for key in t.keys(value)
                if t.shape(key) is None
            }
        last = self._chain(header.label, 0, loop)
        final = self._leave(loop, last, kept)
        with code.scope():
            self._repeat(loop, header, last, (begin, after), phis, active, turn, kept, final)
        code.label(after)
        t.mask = outer
        t.values.update(final)
        if last:
            self._single(self._program.blocks[loop.merge], last)

    def _leave(self, loop: Loop, last: int, kept: dict[Key, str]) -> dict[Key, str]:
        """Values of a loop that lanes leave one by one, as they are when each leaves."""
        t = self._t
        final = {}
        for key, before in kept.items():
            type_ = t.vector_type(key)
            final[key] = t.code.emit(f"select {t.mask_type} {t.active()}, {type_} {t.vector(key)}, {type_} {before}")
        return final

    def _repeat(
        self,
        loop: Loop,
        header: BasicBlock,
        last: int,
        names: tuple[str, str],
        phis: dict[Key, str],
        active: str,
        turn: str,
        kept: dict[Key, str],
        final: dict[Key, str],
    ) -> None:
        """The branch out of a loop, and the rest of its body."""
        t, code = self._t, self._t.code
        begin, after = names
        end = self._program.blocks[last].end
        assert end is not None
        condition, (true, false) = t.keys(end.operands[0])[0], end.operands[1:3]
        stays = true if false == loop.merge else false
        body = code.name("body")
        shape = t.shape(condition)
        if shape is not None and shape.uniform:
            targets = (body, after) if stays == true else (after, body)
            code.branch(t.scalar(condition), *targets)
        else:
            holds = t.vector(condition)
            if stays != true:
                holds = code.emit(f"xor {t.mask_type} {holds}, splat (i1 true)")
            t.mask = t.both(t.mask, holds)
            code.branch(t.any_of(t.mask), body, after)
        code.label(body)
        bounds, held = self._whole.of(loop)
        if not bounds:
            self._round(header, stays, end, begin, phis, active, turn, kept, final)
            return
        whole, part = code.name("whole"), code.name("part")
        code.branch(self._within(bounds), whole, part)
        for label, facts in ((whole, held), (part, set[Key]())):
            code.label(label)
            with t.version(facts):
                self._round(header, stays, end, begin, phis, active, turn, kept, final)

    def _within(self, bounds: Sequence[Bound]) -> str:
        """Whether all lanes of the next round are within bounds."""
        t, code = self._t, self._t.code
        found = ""
        for compared, first, last in bounds:
            type_, limit = f"i{compared.bits}", t.scalar(compared.limit)
            least = literal(type_, first)
            for term, factor in compared.terms:
                number = code.emit(f"mul {type_} {t.scalar(term)}, {literal(type_, factor % (1 << compared.bits))}")
                least = code.emit(f"add {type_} {least}, {number}")
            # The sums of all lanes are between the least one and the limit, if so many fit there: none wraps.
            relation = ("s" if compared.signed else "u") + ("le" if compared.equal else "lt")
            holds = code.emit(f"icmp {relation} {type_} {least}, {limit}")
            room = code.emit(f"sub {type_} {limit}, {least}")
            span = literal(type_, last - first)
            enough = code.emit(f"icmp {'uge' if compared.equal else 'ugt'} {type_} {room}, {span}")
            holds = code.emit(f"and i1 {holds}, {enough}")
            found = code.emit(f"and i1 {found}, {holds}") if found else holds
        return found

    def _round(
        self,
        header: BasicBlock,
        stays: int,
        end: ModuleInstruction,
        begin: str,
        phis: dict[Key, str],
        active: str,
        turn: str,
        kept: dict[Key, str],
        final: dict[Key, str],
    ) -> None:
        """The rest of a loop's body, and the branch back."""
        t, code, latch = self._t, self._t.code, header.following
        if stays != latch:
            end_label = self._chain(stays, latch)
            self._single(self._program.blocks[latch], end_label)
        end_label = self._chain(latch, header.label)
        texts = self._texts(header, end_label) if header.phis else {}
        if not self._bounded(header, end):
            going = code.name("going")
            stop = code.emit("load atomic i32, ptr %stop monotonic, align 4")
            code.branch(code.emit(f"icmp eq i32 {stop}, 0"), going, "end")
            code.label(going)
        if turn:
            code.add_incoming(turn, wait(self._t, turn), code.block)
        for key, phi in phis.items():
            code.add_incoming(phi, texts[key], code.block)
        if active:
            code.add_incoming(active, t.active(), code.block)
            for key, phi in kept.items():
                code.add_incoming(phi, final[key], code.block)
        code.jump(begin)

    def _bounded(self, header: BasicBlock, end: ModuleInstruction) -> bool:
        """Whether a loop ends after a number of rounds that is known: its counter is compared with a constant."""
        compared = self._program.definitions.get(end.operands[0])
        if compared is None or compared.name not in ("OpSLessThan", "OpULessThan", "OpINotEqual"):
            return False
        counter, limit = compared.operands
        phi = next((phi for phi in header.phis if phi.result == counter), None)
        return (
            phi is not None
            and limit in self._program.constants
            and any(value in self._program.constants for value in phi.operands[::2])
        )


def _from(phi: ModuleInstruction, source: int) -> int:
    """The value that a phi gets from a block."""
    return next(value for value, label in zip(phi.operands[::2], phi.operands[1::2], strict=True) if label == source)
