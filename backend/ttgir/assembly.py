"""The operations of TTIR and TTGIR as a table: operands, results, assembly format, attributes, type equations.

See formats.py for the notation. Operations with a hand-written printer upstream are in custom.py, those that upstream
prints in MLIR's generic form have an empty format here.
"""

from __future__ import annotations

from .formats import Format

FORMATS: dict[str, Format] = {}


def _op(
    name: str, signature: str, text: str, attributes: str = "", types: str = "", stripped: dict[str, str] | None = None
) -> None:
    FORMATS[name] = Format(name, signature, text, attributes, types, stripped)


def _ops(names: str, signature: str, text: str, attributes: str = "", types: str = "") -> None:
    for name in names.split():
        _op(name, signature, text, attributes, types)


# fmt: off
_CAST = "$src attr-dict `:` type($src) `->` type($result)"
_VIEW = "$src attr-dict `:` qualified(type($src)) `->` qualified(type($result))"
_LISTED = "$result attr-dict `:` type($result)"
_ORDERED = "sem:MemSemantic scope:MemSyncScope"

# tt: elementwise
_ops("tt.int_to_ptr tt.ptr_to_int tt.bitcast", "src -> result", _CAST)
_op("tt.fp_to_fp", "src -> result",
    "$src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->` type($result)", "rounding?:RoundingMode")
_op("tt.clampf", "x min max -> result",
    "$x `,` $min `,` $max `,` `propagateNan` `=` $propagateNan attr-dict `:` type($result)",
    "propagateNan:PropagateNan", "same")
_op("tt.precise_sqrt", "x -> result", "$x attr-dict `:` type($x)", "", "same")
_ops("tt.precise_divf tt.approx_divf tt.mulhiui", "x y -> result", "$x `,` $y attr-dict `:` type($x)", "", "same")
_op("tt.addptr", "ptr offset -> result", "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)",
    types="ptr=result")

# tt: memory
_op("tt.load", "ptr mask? other? -> result", "$ptr (`,` $mask^)? (`,` $other^)? attr-dict `:` type($ptr)",
    "cachePolicy? isVolatile=false", "result=pointee(ptr) mask=i1(result) other=result")
_op("tt.store", "ptr value mask?", "$ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)",
    "cachePolicy? ignore_cta:unit", "value=pointee(ptr) mask=i1(value)")
_ops("tt.grid_dependency_wait tt.grid_dependency_launch_dependents", "", "attr-dict")
_op("tt.atomic_load", "ptr mask? -> result",
    "$sem `,` $scope `,` $ptr (`,` $mask^)? attr-dict `:` functional-type(operands, $result)", _ORDERED,
    "result=pointee(ptr) mask=i1(result)")
_op("tt.atomic_store", "ptr value mask?",
    "$sem `,` $scope `,` $ptr `,` $value (`,` $mask^)? attr-dict `:` type($ptr)", _ORDERED,
    "value=pointee(ptr) mask=i1(value)")
_op("tt.atomic_poll", "ptr expected timeout? -> result",
    "$sem `,` $scope `,` $ptr `,` $expected (`timeout` $timeout^)? attr-dict "
    "`:` qualified(type($ptr)) `,` type($expected) `->` type($result)", _ORDERED,
    "expected=pointee(ptr) result=i1(expected)")
_op("tt.atomic_rmw", "ptr val mask? -> result",
    "$atomic_rmw_op `,` $sem `,` $scope `,` $ptr `,` $val (`,` $mask^)? attr-dict `:` "
    "functional-type(operands, $result)", "atomic_rmw_op:RMWOp " + _ORDERED,
    "val=pointee(ptr) result=val mask=i1(val)")
_op("tt.atomic_cas", "ptr cmp val -> result",
    "$sem `,` $scope `,` $ptr `,` $cmp `,` $val attr-dict `:` functional-type(operands, $result)", _ORDERED,
    "val=pointee(ptr) cmp=val result=val")

# tt: shapes
_ops("tt.splat tt.broadcast", "src -> result", _CAST)
_op("tt.trans", "src -> result", _CAST, "order")
_op("tt.expand_dims", "src -> result", _CAST, "axis")
_op("tt.unsplat", "src -> result", "$src attr-dict `:` type($src)", types="result=element(src)")
_op("tt.reshape", "src -> result",
    "$src (`allow_reorder` $allow_reorder^)? (`efficient_layout` $efficient_layout^)? attr-dict `:` "
    "type($src) `->` type($result)", "allow_reorder:unit efficient_layout:unit")
_ops("tt.cat tt.join", "lhs rhs -> result", "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)",
     types="rhs=lhs")
_op("tt.split", "src -> outLHS outRHS", "$src attr-dict `:` type($src) `->` type($outLHS)", types="outRHS=outLHS")
_op("tt.make_range", "-> result", "attr-dict `:` type($result)", "start end")
_op("tt.gather", "src indices -> result", "$src `[` $indices `]` attr-dict `:` functional-type(operands, results)",
    "axis efficient_layout:unit")
_op("tt.histogram", "src mask? -> result", "$src (`,` $mask^)? attr-dict `:` type($src) `->` type($result)",
    types="mask=i1(src)")

# tt: programs, dots
_ops("tt.get_program_id tt.get_num_programs", "-> result", "$axis attr-dict `:` type($result)", "axis:ProgramIDDim")
_op("tt.dot", "a b c -> d",
    "$a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? attr-dict `:` type($a) `*` type($b) `->` type($d)",
    "inputPrecision:InputPrecision=ieee maxNumImpreciseAcc=0", "c=d")
_op("tt.dot_scaled", "a b c a_scale? b_scale? -> d",
    "$a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c `lhs` `=` $a_elem_type `rhs` `=` $b_elem_type "
    "attr-dict `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)? `->` type($d)",
    "a_elem_type:ScaleDotElemType b_elem_type:ScaleDotElemType fastMath lhs_k_pack=true rhs_k_pack=true", "c=d")

# tt: regions and their terminators, calls, debugging
_op("tt.reduce", "srcs* -> result*", "", "axis")
_op("tt.scan", "srcs* -> result*", "", "axis reverse")
_op("tt.map_elementwise", "srcs* -> result*", "", "pack")
_ops("tt.reduce.return tt.scan.return ttg.mask.return", "result*", _LISTED)
_op("tt.map_elementwise.return", "result*", "attr-dict ($result^ `:` type($result))?")
_op("tt.extern_elementwise", "srcs* -> result", "operands attr-dict `:` functional-type(operands, $result)",
    "libname libpath symbol pure")
_op("tt.elementwise_inline_asm", "args* -> result*",
    "$asm_string attr-dict ($args^ `:` type($args))? `->` type($result)",
    "asm_string:str constraints pure packed_element")
_op("tt.print", "args*", "$prefix attr-dict (`:` $args^ `:` type($args))?", "prefix:str hex isSigned")
_op("tt.assert", "condition", "$condition `,` $message attr-dict `:` type($condition)", "message:str")
_op("tt.call", "operands* -> results*", "$callee `(` $operands `)` attr-dict `:` functional-type($operands, results)",
    "callee:symbol")
_op("tt.return", "srcs*", "attr-dict ($srcs^ `:` type($srcs))?")

# tt: tensor descriptors
_op("tt.make_tensor_descriptor", "base shape* strides* -> result",
    "$base `,` `[` $shape `]` `,` `[` $strides `]` attr-dict `:` type($base) `,` type($result)",
    "padding:PaddingOption=zero", stripped={"base": "!tt.ptr", "result": "!tt.tensordesc"})
_op("tt.descriptor_load", "desc indices* -> result",
    "$desc `[` $indices `]` attr-dict `:` qualified(type($desc)) `->` type($result)", "cachePolicy?")
_op("tt.descriptor_store", "desc src indices*",
    "$desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,` type($src)")
_op("tt.descriptor_reduce", "desc src indices*",
    "$kind `,` $desc `[` $indices `]` `,` $src attr-dict `:` qualified(type($desc)) `,` type($src)",
    "kind:DescriptorReduceKind")
_op("tt.descriptor_gather", "desc x_offsets y_offset -> result",
    "$desc `[` $x_offsets `,` $y_offset `]` attr-dict `:` functional-type(operands, results)")
_op("tt.descriptor_scatter", "desc x_offsets y_offset src",
    "$desc `[` $x_offsets `,` $y_offset `]` `,` $src attr-dict `:` type(operands)")

# ttg
_op("ttg.inline_asm", "args* -> result*", "$asm_string attr-dict ($args^)? `:` functional-type($args, $result)",
    "asm_string:str constraints pure")
_op("ttg.convert_layout", "src -> result", _CAST, "force_warp_shuffle:unit")
_op("ttg.async_wait", "asyncToken* -> retToken", "($asyncToken^)? attr-dict", "num", "asyncToken=token retToken=token")
_op("ttg.async_commit_group", "inputTokens* -> asyncToken", "(`tokens` $inputTokens^)? attr-dict",
    types="inputTokens=token asyncToken=token")
_op("ttg.async_copy_global_to_local", "src result mask? other? -> token_",
    "$src `,` $result (`mask` $mask^)? (`other` $other^)? attr-dict `:` type($src) `->` type($result)",
    "cachePolicy? isVolatile=false contiguity=1", "mask=i1(src) other=pointee(src) token_=token",
    {"result": "!ttg.memdesc"})
_op("ttg.local_alloc", "src? -> result", "($src^)? attr-dict `:` functional-type(operands, results)", "alignment?")
_op("ttg.local_dealloc", "src", "$src attr-dict `:` qualified(type($src))")
_op("ttg.memdesc_index", "src index -> result",
    "$src `[` $index `]` attr-dict `:` qualified(type($src)) `->` qualified(type($result))", types="index=i32")
_op("ttg.memdesc_subslice", "src -> result",
    "$src `[` custom<Offsets>($offsets) `]` attr-dict `:` qualified(type($src)) `->` qualified(type($result))",
    "offsets")
_op("ttg.memdesc_trans", "src -> result", _VIEW, "order")
_ops("ttg.memdesc_reshape ttg.memdesc_reinterpret", "src -> result", _VIEW)
_op("ttg.local_load", "src token_? -> result",
    "$src (`token` $token_^)? attr-dict `:` qualified(type($src)) `->` type($result)", types="token_=token")
_op("ttg.local_store", "src dst", "$src `,` $dst attr-dict `:` type($src) `->` qualified(type($dst))")
_op("ttg.local_gather", "src indices token_? -> result",
    "$src `[` $indices `]` (`token` $token_^)? attr-dict `:` qualified(type($src)) `,` type($indices) `->` "
    "type($result)", "axis", "token_=token")
_op("ttg.local_scatter", "dst values indices token_?",
    "$dst `[` $indices `]` `,` $values (`token` $token_^)? attr-dict `:` qualified(type($dst)) `,` type($indices) `,` "
    "type($values)", "axis", "token_=token")
_op("ttg.local_atomic_scatter_rmw", "dst values indices mask? -> result",
    "$atomic_rmw_op `,` $dst `[` $indices `]` `,` $values (`,` $mask^)? attr-dict `:` "
    "functional-type(operands, results)", "atomic_rmw_op:RMWOp axis", "result=values mask=i1(values)")
_op("ttg.predicate_stage", "iv ub step -> result",
    "$iv `,` $ub `,` $step `maxStage` $maxStage `stage` $stage attr-dict `:` type($iv) `->` type($result)",
    "maxStage:int stage:int", "ub=iv step=iv")
_op("ttg.mask", "pred -> result*", "")
_op("ttg.fp4_to_fp", "src -> result", _CAST, "axis")
_op("ttg.global_scratch_alloc", "-> result", "attr-dict `:` qualified(type($result))",
    "nbytes alignment third_party_allocation:unit shared_cluster_state:unit")
_op("ttg.warp_specialize.partitions", "explicitCaptures*", "")
_op("ttg.warp_yield", "values*", "($values^)? attr-dict (`:` type($values)^)?")
_op("ttg.warp_return", "", "attr-dict")
_op("ttg.barrier", "", "$addrSpace attr-dict", "addrSpace:AddrSpace")
_op("ttg.warp_id", "-> result", "attr-dict", "omitUniformHint:unit", "result=i32")

# arith
_ops("arith.addi arith.subi arith.muli arith.shli", "lhs rhs -> result",
     "$lhs `,` $rhs (`overflow` `` $overflowFlags^)? attr-dict `:` type($result)", "overflowFlags?:flags", "same")
_ops("arith.divsi arith.divui arith.shrsi arith.shrui", "lhs rhs -> result",
     "$lhs `,` $rhs (`exact` $isExact^)? attr-dict `:` type($result)", "isExact:unit", "same")
_ops("arith.ceildivsi arith.ceildivui arith.floordivsi arith.remsi arith.remui arith.andi arith.ori arith.xori "
     "arith.maxsi arith.maxui arith.minsi arith.minui", "lhs rhs -> result",
     "$lhs `,` $rhs attr-dict `:` type($result)", "", "same")
_ops("arith.addf arith.subf arith.mulf arith.divf arith.remf arith.maximumf arith.maxnumf arith.minimumf arith.minnumf",
     "lhs rhs -> result", "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)", "fastmath?:flags",
     "same")
_op("arith.negf", "operand -> result", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)",
    "fastmath?:flags", "same")
_op("arith.flush_denormals", "operand -> result", "$operand attr-dict `:` type($result)", "", "same")
_op("arith.cmpi", "lhs rhs -> result", "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs)",
    "predicate:CmpIPredicate", "rhs=lhs result=i1(lhs)")
_op("arith.cmpf", "lhs rhs -> result",
    "$predicate `,` $lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs)",
    "predicate:CmpFPredicate fastmath?:flags", "rhs=lhs result=i1(lhs)")
_TO = "$src attr-dict `:` type($src) `to` type($result)"
_ops("arith.extsi arith.sitofp arith.fptosi arith.fptoui arith.bitcast arith.index_cast", "src -> result", _TO)
_ops("arith.extui arith.uitofp arith.index_castui", "src -> result",
     "$src (`nneg` $nonNeg^)? attr-dict `:` type($src) `to` type($result)", "nonNeg:unit")
_op("arith.trunci", "src -> result",
    "$src (`overflow` `` $overflowFlags^)? attr-dict `:` type($src) `to` type($result)", "overflowFlags?:flags")
_op("arith.extf", "src -> result",
    "$src (`fastmath` `` $fastmath^)? attr-dict `:` type($src) `to` type($result)", "fastmath?:flags")
_ops("arith.truncf arith.convertf", "src -> result",
     "$src ($roundingmode^)? (`fastmath` `` $fastmath^)? attr-dict `:` type($src) `to` type($result)",
     "roundingmode?:ArithRoundingMode fastmath?:flags")
_op("arith.scaling_extf", "src scale -> result",
    "$src `,` $scale (`fastmath` `` $fastmath^)? attr-dict `:` type($src) `,` type($scale) `to` type($result)",
    "fastmath?:flags")
_op("arith.scaling_truncf", "src scale -> result",
    "$src `,` $scale ($roundingmode^)? (`fastmath` `` $fastmath^)? attr-dict `:` type($src) `,` type($scale) `to` "
    "type($result)", "roundingmode?:ArithRoundingMode fastmath?:flags")
_ops("arith.mulsi_extended arith.mului_extended", "lhs rhs -> low high",
     "$lhs `,` $rhs attr-dict `:` type($lhs)", "", "same")
_ops("arith.addui_extended arith.subui_extended", "lhs rhs -> sum overflow",
     "$lhs `,` $rhs attr-dict `:` type($sum) `,` type($overflow)", types="lhs=sum rhs=sum")

# math
_ops("math.absf math.acos math.acosh math.asin math.asinh math.atan math.atanh math.cbrt math.ceil math.cos math.cosh "
     "math.erf math.erfc math.exp math.exp2 math.expm1 math.floor math.log math.log10 math.log1p math.log2 math.round "
     "math.roundeven math.rsqrt math.sin math.sinh math.sqrt math.tan math.tanh math.trunc", "operand -> result",
     "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)", "fastmath?:flags", "same")
_ops("math.absi math.ctlz math.ctpop math.cttz", "operand -> result", "$operand attr-dict `:` type($result)", "",
     "same")
_ops("math.isfinite math.isinf math.isnan math.isnormal", "operand -> result",
     "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($operand)", "fastmath?:flags", "result=i1(operand)")
_ops("math.atan2 math.copysign math.powf", "lhs rhs -> result",
     "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)", "fastmath?:flags", "same")
_op("math.ipowi", "lhs rhs -> result", "$lhs `,` $rhs attr-dict `:` type($result)", "", "same")
_op("math.fpowi", "lhs rhs -> result",
    "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs) `,` type($rhs)", "fastmath?:flags",
    "result=lhs")
_op("math.fma", "a b c -> result", "$a `,` $b `,` $c (`fastmath` `` $fastmath^)? attr-dict `:` type($result)",
    "fastmath?:flags", "same")
_op("math.clampf", "value min max -> result",
    "$value `to` `[` $min `,` $max `]` (`fastmath` `` $fastmath^)? attr-dict `:` type($result)", "fastmath?:flags",
    "same")
_op("math.sincos", "operand -> sin cos", "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($sin)",
    "fastmath?:flags", "same")

# scf, cf, ub
_op("scf.yield", "results*", "attr-dict ($results^ `:` type($results))?")
_op("scf.condition", "condition args*", "`(` $condition `)` attr-dict ($args^ `:` type($args))?")
_op("cf.assert", "arg", "$arg `,` $msg attr-dict", "msg:str")
_op("ub.poison", "-> result", "attr-dict `:` type($result)")
_op("ub.unreachable", "", "attr-dict")

# llvm: tl.assume
_op("llvm.intr.assume", "cond", "$cond attr-dict `:` type($cond)")

#: Signatures of the operations that custom.py reads, for their generic form.
_op("arith.constant", "-> result", "", "value")
_op("arith.select", "condition true_value false_value -> result", "")
_op("scf.for", "lowerBound upperBound step initArgs* -> results*", "", "unsignedCmp:unit")
_op("scf.if", "condition -> results*", "")
_op("scf.while", "inits* -> results*", "")
_op("cf.br", "destOperands*", "")
_op("cf.cond_br", "condition trueDestOperands* falseDestOperands*", "")
_op("ttg.warp_specialize", "-> defaultPassthrough*", "", "partitionNumWarps")

# fmt: on
