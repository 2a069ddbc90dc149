"""How to install an extra, as messages say it."""

import shlex


def how_to_install(requirement: str) -> str:
    """Say how to install an extra, or another package of this repository, from an index and from a clone."""
    name, bracket, extra = requirement.partition("[")
    place = "." if name == "skellipsoid" else f"./packages/{name}"
    return f"pip install {shlex.quote(requirement)}, or in a clone pip install {shlex.quote(place + bracket + extra)}"
