"""Who owns what. The outermost layer: any ordering works inside a tenant's view."""

from __future__ import annotations
