"""What only Mesa's CPU driver needs, because it makes a coroutine of a shader that has barriers (Faults.coroutines).

Its compile time grows with the barriers and with what lives across them. So there are fewer subgroups where a kernel
exchanges often, and more where it has many tensors (``subgroups.py``), and what is reduced stays within a subgroup
(``own_rows.py``). In SPIR-V the stretches between barriers are numbered (``stretches.py``), cheap integers are computed
again in each (``repeating.py``), and what costs more is kept from that (``anchors.py``).
"""
