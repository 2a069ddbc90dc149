"""An HTTP server of a saved or exported model: the command ``skellipsoid-serve``, and the application itself."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._app import create_app
    from ._settings import Settings

__all__ = ["Settings", "create_app"]


def __getattr__(name: str) -> Any:
    """Import FastAPI only where it is used: the command answers to signals and wrong options before."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _app

    return getattr(_app, name)
