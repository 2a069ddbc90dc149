"""How the pictures of the gallery look; an example that is run alone has matplotlib's own defaults."""


def large_letters(gallery_conf, fname):
    """Set letters that can be read where a page scales the picture down to a phone."""
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 14, "axes.labelsize": 12, "legend.fontsize": 12})
