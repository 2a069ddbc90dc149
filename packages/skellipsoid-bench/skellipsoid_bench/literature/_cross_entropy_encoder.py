"""Base of the text encoders of the literature, and the one that is trained with plain cross-entropy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch

from skellipsoid._base import TrainedTextFeatures

from ._docs import published_docs
from ._sklearn import Interval, StrOptions
from ._torch.objectives import CrossEntropySettings

#: Step size of AdamW for ``"auto"``: the published one, and that of ``SupConTextEncoder`` for a head.
RATES: Mapping[str, Mapping[str, float]] = {"full": {"learning_rate": 2e-5}, "head": {"learning_rate": 1e-3}}


@dataclass(kw_only=True, eq=False, repr=False)
class PublishedTraining:
    """Parameters of the training of a text model, with the defaults that the literature has in common."""

    model_name: str = field(default="sentence-transformers/all-MiniLM-L6-v2", kw_only=False)
    batch_size: int = 128
    max_iter: int = 100
    early_stopping: bool = True
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    duplicates: str = "once"
    max_length: int | None = None
    open_label: int | str = -1
    device: str | torch.device = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int | bool = 0

    # What SupConTextEncoder has as parameters.
    normalize = False
    weight_decay = 0.01
    tol = 0.0
    cross_fit = False
    _auto: ClassVar[Mapping[str, Mapping[str, float]]] = RATES

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TrainedTextFeatures._parameter_constraints,
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }


@dataclass(kw_only=True, eq=False, repr=False)
class LiteratureTextEncoder(PublishedTraining, TrainedTextFeatures):
    """Base of a text encoder of the literature: what is the same in all of them.

    The features of a text are f(W x + b), where x is the mean of its token vectors.
    """

    finetune: str = "full"
    learning_rate: float | str = "auto"

    # What SupConTextEncoder has as parameters.
    n_components = None
    pooling = "mean"
    prompt = ""
    keep_texts = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PublishedTraining._parameter_constraints,
        "finetune": [StrOptions({"full", "head"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }


@published_docs
class CrossEntropyTextEncoder(LiteratureTextEncoder):
    """Text encoder trained with the cross-entropy of a linear classifier.

    The representation of ADB, OpenMax and softmax thresholds on the platform TEXTOIR [1]_. The features of a text are
    ReLU(W x + b), where x is the mean of its token vectors. In training, dropout and a linear classifier follow; both
    are dropped. ADB as published [2]_ is this encoder before an :class:`~skellipsoid_bench.literature.ADBClassifier`.

    Read more in the :ref:`User Guide <literature>`.

    Parameters
    ----------
    {encoder_model}

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
    skellipsoid.SupConTextEncoder : Trained with the supervised contrastive loss.

    Notes
    -----
    The released code starts W at random numbers, lets the learning rate fall along a line, and stops by the macro F1 of
    the validation texts. DOC as published has one sigmoid for each class in place of the softmax.

    References
    ----------
    .. [1] Zhang, H., Li, X., Xu, H., Zhang, P., Zhao, K., Gao, K. "TEXTOIR: An Integrated and Visualized Platform for
       Text Open Intent Recognition." ACL 2021, system demonstrations. Public code: thuiar/TEXTOIR,
       ``open_intent_detection/backbones/bert.py``, class ``BERT``.
    .. [2] Zhang, H., Xu, H., Lin, T.-E. "Deep Open Intent Classification with Adaptive Decision Boundary." AAAI 2021.

    Examples
    --------
    >>> from skellipsoid_bench.literature import CrossEntropyTextEncoder
    >>> texts = ["wake me at six", "alarm for noon please", "dim the lamp", "lights off"]
    >>> intents = ["alarm", "alarm", "light", "light"]
    >>> encoder = CrossEntropyTextEncoder(finetune="head", max_iter=3, early_stopping=False, random_state=0)
    >>> encoder.fit(texts, intents).transform(["turn the light on"]).shape
    (1, 384)
    """

    _settings = CrossEntropySettings
