"""Optimistic profiling: few measurements along the cores, the memory axis by calculation.

`bisection`, `curve`, `caching`, `progress` and `sensitivity` only compute; `running` and `storage`
touch the machine. What comes out is a `model.profile.Profile`.
"""
