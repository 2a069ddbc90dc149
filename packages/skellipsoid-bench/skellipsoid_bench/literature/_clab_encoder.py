"""CLAB's text encoder: K-centre contrastive loss and cross-entropy of cosines."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from ._cross_entropy_encoder import LiteratureTextEncoder
from ._docs import published_docs
from ._sklearn import Interval
from ._torch.objectives import KCenterSettings


@published_docs
@dataclass(kw_only=True, eq=False, repr=False)
class CLABTextEncoder(LiteratureTextEncoder):
    """Text encoder trained with the K-centre contrastive loss (CLAB's representation).

    The representation stage of CLAB [1]_. The features of a text are r / ‖r‖₂ with r = ReLU(W x + b), where x is the
    mean of its token vectors. Every text of a batch is the first of a group: ``n_positives`` other texts of its class
    are added, and ``n_negatives`` texts of other classes. The loss is λ times the K-centre contrastive loss of these
    groups plus 1 − λ times the cross-entropy, over all texts of the step, of the cosines of features and class weights.
    CLAB as published is this encoder before a :class:`CLABClassifier`.

    Read more in the :ref:`User Guide <literature>`.

    Parameters
    ----------
    {encoder_model}

    contrastive_weight : float, default=0.25
        λ, the weight of the contrastive loss, in [0, 1].

    n_positives : int, default=5
        K, the number of other texts of its class in the group of a text.

    n_negatives : int, default=1
        M, the number of texts of other classes for each group.

    learning_rate : float or "auto", default="auto"
        Largest step size of AdamW. It is reached after a tenth of the steps and falls to 0 along a cosine. ``"auto"``
        is 2e-5, as published, and 0.001 for a head.

    {encoder_training}

    Attributes
    ----------
    {encoder_attributes}

    See Also
    --------
    CLABClassifier : Its boundary.

    Notes
    -----
    With a, b in a group and e(a, b) = exp(a · b), the K-centre contrastive loss of the pair is −ln(e(a, b) / (e(a, b) +
    Σ e(a, n) + Σ e(b, n) + R)), where n are the negatives of the group and R is the sum over all other ordered pairs of
    it. A step embeds 1 + K + M texts for each text of the batch: 7 with the defaults.

    The formula is that of the authors' code. Its released forward pass sets its outputs to ``None`` before they are
    used, so that it cannot run. Where the class has fewer texts than a group, texts are drawn twice; then their dropout
    differs. The negative is a random text of a random other class.

    References
    ----------
    .. [1] Liu, X., Li, J., Mu, J., Yang, M., Xu, R., Wang, B. "Effective Open Intent Classification with K-center
       Contrastive Learning and Adjustable Decision Boundary." AAAI 2023. Public code: lxk00/CLAP,
       ``finetune/model.py``, function ``kccl_loss``.

    Examples
    --------
    >>> from skellipsoid_bench.literature import CLABTextEncoder
    >>> texts = ["wake me at six", "alarm for noon please", "dim the lamp", "lights off"]
    >>> intents = ["alarm", "alarm", "light", "light"]
    >>> encoder = CLABTextEncoder(finetune="head", max_iter=3, early_stopping=False, random_state=0)
    >>> encoder.fit(texts, intents).transform(["turn the light on"]).shape
    (1, 384)
    """

    contrastive_weight: float = 0.25
    n_positives: int = 5
    n_negatives: int = 1

    _settings = KCenterSettings
    normalize = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LiteratureTextEncoder._parameter_constraints,
        "contrastive_weight": [Interval(Real, 0, 1, closed="both")],
        "n_positives": [Interval(Integral, 1, None, closed="left")],
        "n_negatives": [Interval(Integral, 1, None, closed="left")],
    }
