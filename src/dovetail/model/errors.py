"""What can go wrong because of the person using us, as opposed to a defect of ours.

A `UserError` is one sentence: what is wrong, where, and what to do. Surfaces print it without a
traceback and exit with code 2.
"""

from __future__ import annotations


class UserError(Exception):
    """The request was wrong; the message is the one sentence the person reads."""


class Missing(UserError):
    """What was asked for is not there."""


class Unavailable(UserError):
    """Nothing was wrong with the request: it cannot be served now."""


class OverCommitted(Exception):
    """A plan asked for capacity that is not there: a defect in a planner, never in the input."""
