"""The address of the repository, which ``pyproject.toml`` has; where none is set, pages show nothing of it.

The builder's tag ``repository`` says that there is one, and the substitutions ``|clone|`` and ``|issues|`` hold it.
"""

import tomllib
from pathlib import Path


def address(project):
    """Give the address that ``[project.urls]`` of a ``pyproject.toml`` has, or ``""``."""
    found = tomllib.loads(Path(project).read_text(encoding="utf-8"))["project"]
    return found.get("urls", {}).get("Repository", "").rstrip("/")


def read(app, config):
    """Set the tag, the substitutions, and the icon in the bar."""
    url = address(Path(app.confdir).parent / "pyproject.toml")
    lines = (f".. |clone| replace:: git clone {url}", f".. |issues| replace:: {url}/issues")
    config.rst_epilog = "\n".join([config.rst_epilog or "", *lines, ""])
    if url:
        app.tags.add("repository")
        icon = {"name": "Repository", "url": url, "icon": "fa-solid fa-code-branch"}
        config.html_theme_options = {**config.html_theme_options, "icon_links": [icon]}


def setup(app):
    """Let Sphinx call it."""
    app.connect("config-inited", read)
    return {"parallel_read_safe": True}
