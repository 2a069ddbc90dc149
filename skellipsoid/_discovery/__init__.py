"""Groups among the samples that a classifier answers open: what is new in the traffic."""

from ._discover import discover_classes
from ._result import DiscoveredClasses

__all__ = ["DiscoveredClasses", "discover_classes"]
