"""How open a problem is, before any model."""

from math import sqrt


def openness(n_train_classes: int, n_test_classes: int, *, n_target_classes: int | None = None) -> float:
    r"""Compute how open a problem is: 0 if every test class is known, near 1 if nearly all are unknown.

    It depends on the numbers of classes, not of samples. Every unknown class is counted; the answer *open* is not a
    class of its own.

    Parameters
    ----------
    n_train_classes : int
        Number of classes with training samples, C_train.
    n_test_classes : int
        Number of classes among the test samples, known ones included, C_test ≥ C_train.
    n_target_classes : int, default=None
        Number of classes to be recognised, C_target ≤ C_train. None means all training classes. It is smaller if some
        training classes are used as negative samples only.

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
        raise ValueError(
            f"n_target_classes={target}, n_train_classes={n_train_classes} and n_test_classes={n_test_classes} must "
            "rise in this order from 1 on: the test classes include the training classes, and these the targets."
        )
    if 2 * n_train_classes > n_test_classes + target:
        raise ValueError(
            f"The openness of {n_train_classes} training, {n_test_classes} test and {target} target classes would be "
            "negative: leave n_target_classes out, which counts every training class as a target."
        )
    return 1.0 - sqrt(2 * n_train_classes / (n_test_classes + target))
