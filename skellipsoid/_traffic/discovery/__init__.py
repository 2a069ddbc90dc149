"""Groups among the samples that a classifier rejects: what is new in the traffic."""

from .discover import discover_classes
from .result import DiscoveredClasses

__all__ = ["DiscoveredClasses", "discover_classes"]
