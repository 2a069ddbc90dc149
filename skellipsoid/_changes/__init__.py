"""Classes come and go after a fit: add, update, remove, merge."""

from ._classifier import ChangesClasses
from ._pipeline import add_classes, merge_classes, remove_classes, update_classes

__all__ = ["ChangesClasses", "add_classes", "merge_classes", "remove_classes", "update_classes"]
