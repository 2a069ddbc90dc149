"""MOGB's text encoder: cross-entropy, and the granular-ball loss."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from ._cross_entropy_encoder import LiteratureTextEncoder
from ._docs import published_docs
from ._sklearn import Interval
from ._torch.objectives import GranularBallSettings


@published_docs
@dataclass(kw_only=True, eq=False, repr=False)
class MOGBTextEncoder(LiteratureTextEncoder):
    """Text encoder trained in two stages with granular balls (MOGB's representation).

    The representation stage of MOGB [1]_. The features of a text are ReLU(W x + b), where x is the mean of its token
    vectors. An epoch has two stages:

    1. Steps on the cross-entropy of a linear classifier, for each batch.
    2. The features of all training texts are divided into granular balls, as by :class:`MOGBClassifier`. One step on
       −ln softmax(−d / Σ_k d_k) of all texts follows, where d_k is the distance to the nearest ball of class k. It has
       an optimiser of its own.

    MOGB as published is this encoder before a :class:`MOGBClassifier`, which finds balls again in the features of
    ``transform``, with the limits for evaluation.

    Read more in the :ref:`User Guide <literature>`.

    Parameters
    ----------
    {encoder_model}

    ball_learning_rate : float, default=0.0001
        Largest step size of the second stage, with the same rise and fall as ``learning_rate``.

    split_purity : float, default=0.9
        Balls with a smaller purity are split, in [0, 1].

    split_size : int, default=5
        Only balls with more texts are split. The default is the setting of the EliDecide paper for Banking77 and
        CLINC150; for StackOverflow it is 15.

    min_purity : float, default=1.0
        Only balls with at least this purity count, in [0, 1].

    learning_rate : float or "auto", default="auto"
        Largest step size of AdamW. It is reached after a tenth of the steps and falls to 0 along a cosine. ``"auto"``
        is 2e-5, as published, and 0.001 for a head.

    {encoder_training}

    Attributes
    ----------
    {encoder_attributes}

    See Also
    --------
    MOGBClassifier : Its boundary.

    Notes
    -----
    In the released code a second linear layer lies between the features of both stages; the cross-entropy does not
    train it. Here both stages have the same features. A class without a ball makes the released loss infinite; here it
    takes no part. The released code needs a purity greater than ``min_purity``, and its limits differ from those of the
    EliDecide paper, which are the defaults here.

    References
    ----------
    .. [1] Li, Y., Ouyang, Y., Pan, Y., and others. "Multi-Granularity Open Intent Classification via Adaptive
       Granular-Ball Decision Boundary." AAAI 2025. Public code: Liyanhuaa/MOGB, ``pretrain.py`` and ``myloss.py``.

    Examples
    --------
    >>> from skellipsoid_bench.literature import MOGBTextEncoder
    >>> texts = ["wake me at six", "alarm for noon please", "dim the lamp", "lights off"]
    >>> intents = ["alarm", "alarm", "light", "light"]
    >>> encoder = MOGBTextEncoder(finetune="head", max_iter=3, early_stopping=False, random_state=0)
    >>> encoder.fit(texts, intents).transform(["turn the light on"]).shape
    (1, 384)
    """

    ball_learning_rate: float = 0.0001
    split_purity: float = 0.9
    split_size: int = 5
    min_purity: float = 1.0

    _settings = GranularBallSettings
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LiteratureTextEncoder._parameter_constraints,
        "ball_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "split_purity": [Interval(Real, 0, 1, closed="both")],
        "split_size": [Interval(Integral, 1, None, closed="left")],
        "min_purity": [Interval(Real, 0, 1, closed="both")],
    }
