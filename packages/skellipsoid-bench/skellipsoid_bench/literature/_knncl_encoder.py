"""KNNCL's text encoder: contrastive loss with the nearest neighbours in a queue, and cross-entropy."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from ._cross_entropy_encoder import RATES, LiteratureTextEncoder
from ._docs import published_docs
from ._sklearn import Interval
from ._torch.objectives import KNNContrastiveSettings


@published_docs
@dataclass(kw_only=True, eq=False, repr=False)
class KNNCLTextEncoder(LiteratureTextEncoder):
    """Text encoder trained with the contrastive loss of nearest neighbours (KNNCL's representation).

    The representation stage of KNN-contrastive learning [1]_. The features of a text are tanh(W x + b), where x is the
    mean of its token vectors. The loss is λ times a contrastive loss plus 1 − λ times a cross-entropy; each has a head
    of two layers behind the features, which is dropped after training. A *momentum encoder*, a copy that follows the
    trained encoder slowly, computes the keys of ``n_positives`` other texts of the class of each text. The keys enter a
    queue. The positives of a text are the ``n_neighbors`` keys of its class that are most similar to it, the negatives
    are all keys of other classes. KNNCL as published is this encoder before
    ``LOFOpenSetClassifier(n_neighbors=25, contamination=0.05, scope="all")``.

    Read more in the :ref:`User Guide <literature>`.

    Parameters
    ----------
    {encoder_model}

    contrastive_weight : float, default=0.1
        λ, the weight of the contrastive loss, in [0, 1].

    temperature : float, default=0.3
        τ of the contrastive loss.

    n_neighbors : int, default=40
        Largest number of positives of a text in the queue.

    n_positives : int, default=3
        Number of texts whose keys enter the queue, for each text of the batch.

    queue_size : int, default=7500
        Largest number of keys in the queue.

    learning_rate : float or "auto", default="auto"
        Largest step size of AdamW. It is reached after a tenth of the steps and falls to 0 along a cosine. ``"auto"``
        is 1e-5, as published, and 0.001 for a head.

    {encoder_training}

    Attributes
    ----------
    {encoder_attributes}

    See Also
    --------
    skellipsoid.baselines.LOFOpenSetClassifier : Its boundary.

    Notes
    -----
    The momentum encoder keeps 0.999 of its weights at each step, and gradients are shortened to the length 0.25: both
    as in the authors' code. A step embeds 1 + ``n_positives`` texts for each text of the batch.

    In the released code the queue begins with random vectors of random classes; here it begins empty. The released
    positives are the keys most similar to the text whatever their class, which contradicts the paper; here they are
    keys of its class. The released features are those of BERT's pooler, of the first token.

    References
    ----------
    .. [1] Zhou, Y., Liu, P., Qiu, X. "KNN-Contrastive Learning for Out-of-Domain Intent Classification." ACL 2022.
       Public code: zyh190507/KnnContrastiveForOOD, ``model.py``, class ``ContrastiveMoCoKnnBert``; settings of the
       EliDecide paper.

    Examples
    --------
    >>> from skellipsoid_bench.literature import KNNCLTextEncoder
    >>> texts = ["wake me at six", "alarm for noon please", "dim the lamp", "lights off"]
    >>> intents = ["alarm", "alarm", "light", "light"]
    >>> encoder = KNNCLTextEncoder(finetune="head", max_iter=3, early_stopping=False, random_state=0)
    >>> encoder.fit(texts, intents).transform(["turn the light on"]).shape
    (1, 384)
    """

    contrastive_weight: float = 0.1
    temperature: float = 0.3
    n_neighbors: int = 40
    n_positives: int = 3
    queue_size: int = 7500

    _settings = KNNContrastiveSettings
    _auto: ClassVar[Mapping[str, Mapping[str, float]]] = {**RATES, "full": {"learning_rate": 1e-5}}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LiteratureTextEncoder._parameter_constraints,
        "contrastive_weight": [Interval(Real, 0, 1, closed="both")],
        "temperature": [Interval(Real, 0, None, closed="neither")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_positives": [Interval(Integral, 1, None, closed="left")],
        "queue_size": [Interval(Integral, 1, None, closed="left")],
    }
