"""The public data sets that the literature compares on, and messages of real users."""

from ._fetchers import fetch_banking77, fetch_clinc_oos, fetch_mattress_bot, fetch_stackoverflow

__all__ = ["fetch_banking77", "fetch_clinc_oos", "fetch_mattress_bot", "fetch_stackoverflow"]
