"""Optimistic profiling: few measurements along the cores, the memory axis by calculation.

`bisection`, `curve`, `caching`, `progress`, `sensitivity` and `needs` only compute; `running`,
`pinning`, `storage` and `data` touch the machine. What comes out is a `model.profile.Profile`.
"""
