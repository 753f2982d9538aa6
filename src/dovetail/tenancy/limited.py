"""A view of all nodes for a tenant that owns a number of devices, wherever they are."""

from __future__ import annotations

from dovetail.model.cluster import Cluster


class Limited(Cluster):
    """A view of all nodes in which fewer devices may be taken than are free."""

    __slots__ = ()

    def look_at(self, real: Cluster) -> None:
        """Show what is free there, now and from now on; how many of it is said when it is asked."""
        self.free, self.masks, self.cpu, self.memory = real.free, real.masks, real.cpu, real.memory
        self.shared, self.closed, self.idle = real.shared, real.closed, real.idle

    def look_away(self) -> None:
        """Keep what is shown, so that more can be: there it stays as it is."""
        self.free, self.masks = self.free[:], self.masks[:]
        self.cpu, self.memory = self.cpu[:], self.memory[:]
        self.shared, self.closed = dict(self.shared), dict(self.closed)

    def validate(self) -> None:
        """Like any cluster, but with a lower number of devices to be had."""
        shown, self.idle = self.idle, sum(self.free)
        try:
            assert 0 <= shown <= self.idle
            super().validate()
        finally:
            self.idle = shown
