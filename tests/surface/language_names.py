"""The public names of triton.language that no row of language_rows.py stands for: types, parts of the front end, and
what is refused, with the reason."""

#: Name → why a kernel that uses it is refused, as the error says it.
REFUSED: dict[str, str] = {"make_block_ptr": "Block pointers have been removed in favor of the tensor descriptor API"}

#: Values of optional parameters that are refused.
REFUSED_VALUES: dict[str, str] = {
    "atomic_poll(timeout_ns=)": "Vulkan guarantees no clock, so a timeout cannot be measured"
}

#: Methods of tensors that upstream itself ended.
REFUSED_METHODS: dict[str, str] = {"advance": "Block pointers have been removed"}

#: Element types: each is loaded, stored and converted to and from.
DTYPES = (
    "int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
    "float16 bfloat16 float32 float64 float8e4nv float8e5 float8e4b8 float8e5b16 float8e4b15"
).split()

#: Methods that upstream declares and does not define: they give None, on every backend.
UNDEFINED_METHODS = frozenset({"sort"})

#: Modules, types of the front end's own, and constants: nothing of them is compiled by itself.
FRONT_END = frozenset(
    """
    core extra math random semantic slice standard target_info
    PropagateNan TRITON_MAX_TENSOR_NUMEL
    const constexpr_type pi32_t str_to_ty tensor_descriptor tensor_descriptor_type tuple_type void
    """.split()
)

#: Optional parameters that a row does not pass by name, with the reason.
OPTIONS_ELSEWHERE: dict[str, str] = {"static_assert.msg": "upstream's front end takes it by its place alone"}
