"""Classes come and go after a fit: add, update, remove, merge."""

from .classifier import ChangesClasses
from .pipeline import add_classes, merge_classes, remove_classes, update_classes

__all__ = ["ChangesClasses", "add_classes", "merge_classes", "remove_classes", "update_classes"]
