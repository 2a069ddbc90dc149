"""DA-ADB's text encoder: cross-entropy of distance-aware logits."""

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

from ._cross_entropy_encoder import LiteratureTextEncoder
from ._docs import published_docs
from ._sklearn import Interval
from ._torch.objectives import DistanceAwareSettings


@published_docs
@dataclass(kw_only=True, eq=False, repr=False)
class DAADBTextEncoder(LiteratureTextEncoder):
    """Text encoder trained with distance-aware logits (DA-ADB's representation).

    The representation stage of DA-ADB [1]_. The features of a text are z = ReLU(W x + b), where x is the mean of its
    token vectors. The loss is the cross-entropy of the logits s · ‖z'‖ / (1 + ‖z'‖) · cos(z', w_k) with
    z' = exp(d₂ − d₁) z. Here d₁ and d₂ are the distances of z to the nearest and the second nearest class mean. The
    class means are computed at the start of each epoch, without dropout. DA-ADB as published is this encoder before an
    :class:`~skellipsoid_bench.literature.ADBClassifier`, which uses z.

    Read more in the :ref:`User Guide <literature>`.

    Parameters
    ----------
    {encoder_model}

    scale : float, default=4.0
        s, the factor of the logits (the paper's α).

    learning_rate : float or "auto", default="auto"
        Largest step size of AdamW. It is reached after a tenth of the steps and falls to 0 along a cosine. ``"auto"``
        is 2e-5, as published, and 0.001 for a head.

    {encoder_training}

    Attributes
    ----------
    {encoder_attributes}

    See Also
    --------
    ADBClassifier : Its boundary.

    Notes
    -----
    The first factor of the logits is computed as σ(d₂ − d₁ + ln ‖z‖), which is the same and cannot overflow. An epoch
    embeds every text twice, once for the class means.

    References
    ----------
    .. [1] Zhang, H., Xu, H., Zhao, S., Zhou, Q. "Learning Discriminative Representations and Decision Boundaries for
       Open Intent Detection." IEEE/ACM Transactions on Audio, Speech, and Language Processing, 2023. Public code:
       thuiar/TEXTOIR, ``open_intent_detection/backbones/bert.py``, class ``BERT_Disaware``.

    Examples
    --------
    >>> from skellipsoid_bench.literature import DAADBTextEncoder
    >>> texts = ["wake me at six", "alarm for noon please", "dim the lamp", "lights off"]
    >>> intents = ["alarm", "alarm", "light", "light"]
    >>> encoder = DAADBTextEncoder(finetune="head", max_iter=3, early_stopping=False, random_state=0)
    >>> encoder.fit(texts, intents).transform(["turn the light on"]).shape
    (1, 384)
    """

    scale: float = 4.0

    _settings = DistanceAwareSettings
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LiteratureTextEncoder._parameter_constraints,
        "scale": [Interval(Real, 0, None, closed="neither")],
    }
