"""What compiled kernels and their launchers agree on (docs/internals/abi.md), as data: each fact has one place.

``scalars``: the types of arguments; ``block``: where arguments lie; ``report_buffer``: what kernels tell the host;
``launch``: the places of a launch's own arguments; ``header``: the part of it that the C++ code reads. Nothing here
imports from other packages of the project.
"""
