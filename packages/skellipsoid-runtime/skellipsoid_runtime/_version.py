"""The version, that of skellipsoid: a test compares both."""

__version__ = "0.1.0"
