"""The public data sets that the literature compares on."""

from ._fetchers import fetch_banking77, fetch_clinc_oos, fetch_stackoverflow

__all__ = ["fetch_banking77", "fetch_clinc_oos", "fetch_stackoverflow"]
