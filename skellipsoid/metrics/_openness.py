"""How open a problem is, before any model."""

from math import sqrt


def openness(n_train_classes: int, n_test_classes: int, *, n_target_classes: int | None = None) -> float:
    r"""Compute how open a problem is: 0 when every test class is known, towards 1 as unknown classes prevail.

    Counts classes, not samples: the class *open* itself is not counted, but every class whose samples are open is.

    Parameters
    ----------
    n_train_classes : int
        Number of classes with training samples, C_train.
    n_test_classes : int
        Number of classes among the test samples, known ones included, C_test ≥ C_train.
    n_target_classes : int, default=None
        Number of classes to be recognised, C_target ≤ C_train. None means all training classes; fewer when some
        training classes serve as known negatives only.

    Returns
    -------
    openness : float
        In [0, 1).

    Raises
    ------
    ValueError
        If the counts are not 1 ≤ C_target ≤ C_train ≤ C_test, or if the formula would be negative.

    Notes
    -----
    The formula of Scheirer et al. [1]_,

    .. math:: 1 - \sqrt{\frac{2 \, C_\text{train}}{C_\text{test} + C_\text{target}}},

    which for the default C_target = C_train is the one that Geng et al. [2]_ recommend. With fewer target classes than
    training classes the original formula turns negative for problems with few unknown classes, which is an error here.

    References
    ----------
    .. [1] W. J. Scheirer, A. de Rezende Rocha, A. Sapkota, T. E. Boult, "Toward Open Set Recognition", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 35(7), 2013.
    .. [2] C. Geng, S.-J. Huang, S. Chen, "Recent Advances in Open Set Recognition: A Survey", IEEE Transactions on
       Pattern Analysis and Machine Intelligence 43(10), 2021.

    Examples
    --------
    A quarter of 77 classes is known:

    >>> from skellipsoid.metrics import openness
    >>> round(openness(19, 77), 4)
    0.3708
    """
    target = n_train_classes if n_target_classes is None else n_target_classes
    if not 1 <= target <= n_train_classes <= n_test_classes:
        msg = (
            f"n_target_classes={target}, n_train_classes={n_train_classes} and n_test_classes={n_test_classes} must "
            "rise in this order from 1 on: the test classes include the training classes, and these the targets."
        )
        raise ValueError(msg)
    if 2 * n_train_classes > n_test_classes + target:
        msg = (
            f"The openness of {n_train_classes} training, {n_test_classes} test and {target} target classes would be "
            "negative: leave n_target_classes out, which counts every training class as a target."
        )
        raise ValueError(msg)
    return 1.0 - sqrt(2 * n_train_classes / (n_test_classes + target))
