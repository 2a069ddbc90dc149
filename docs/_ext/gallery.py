"""How the examples of the gallery run and look; one that is run alone has matplotlib's own defaults."""

import contextlib
import warnings

_example = contextlib.ExitStack()


def large_letters(gallery_conf, fname):
    """Set letters that can be read where a page scales the picture down to a phone."""
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 14, "axes.labelsize": 12, "legend.fontsize": 12})


def warnings_are_errors(gallery_conf, fname, when):
    """Let a warning of an example end the build; those between the examples stay what they are."""
    _example.close()
    if when == "before":
        _example.enter_context(warnings.catch_warnings(action="error"))
