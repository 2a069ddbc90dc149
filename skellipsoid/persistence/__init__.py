"""Saves and loads models without pickle: JSON and safetensors, all files or none.

A saved model is a folder with ``skellipsoid.json`` (the manifest: format, versions, parts, parameters, SHA-256 of every
file and of itself), ``README.md`` (a model card) and one folder of parts, in it one folder per estimator. The manifest
names its folder of parts, so that an atomic replacement of this one small file replaces the model. The same files in a
repository on the Hugging Face hub are a model, too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._load import load
    from ._push import push_to_hub
    from ._save import save

__all__ = ["load", "push_to_hub", "save"]

#: Modules from which a name is imported at its first use: reading a manifest needs no torch.
_MODULE_OF = {"load": "_load", "push_to_hub": "_push", "save": "_save"}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
