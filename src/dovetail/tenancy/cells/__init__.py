"""Cells: virtual clusters that are as good as private ones, after HiveD (Zhao et al., OSDI'20).

A tenant owns cells of certain shapes (two nodes, one socket). They are bound to hardware only
while they are used, so idle ones can be lent, and buddy allocation keeps the hardware in a state
from which every tenant can still get all it owns. `state.Cells` is that state, with one mutating
door; `config` reads what tenants own; `tenancy.virtual` puts it behind the core's interface.
"""

from __future__ import annotations
