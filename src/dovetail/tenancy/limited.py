"""A view of all nodes for a tenant that owns a number of devices, wherever they are."""

from __future__ import annotations

from dovetail.model.cluster import Cluster


class Limited(Cluster):
    """A view of all nodes in which fewer devices may be taken than are free."""

    __slots__ = ()

    def validate(self) -> None:
        """Like any cluster, but with a lower number of devices to be had."""
        shown, self.idle = self.idle, sum(self.free)
        try:
            assert 0 <= shown <= self.idle
            super().validate()
        finally:
            self.idle = shown
