"""Goes to triton.tools.extra.toy."""

WHERE = "tools"
