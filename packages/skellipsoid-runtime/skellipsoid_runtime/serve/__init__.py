"""A server of a saved or exported model over HTTP: the command ``skellipsoid-serve``, and the application itself."""

from ._app import create_app
from ._settings import Settings

__all__ = ["Settings", "create_app"]
