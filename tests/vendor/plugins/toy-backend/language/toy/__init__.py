"""Goes to triton.language.extra.toy."""

WHERE = "language"
