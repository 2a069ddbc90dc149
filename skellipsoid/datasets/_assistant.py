"""``load_assistant_intents``: the corpus of 28 intents and open utterances that ships with the package."""

from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

_DATA_MODULE = "skellipsoid.datasets.data"
_FILENAME = "assistant_intents.tsv"
_OPEN_PREFIX = "open_"
_PARTS = ("train", "dev", "test")

_DESCR = """\
.. _assistant_intents:

Requests to a general assistant
-------------------------------

**Data set characteristics**

:Number of known intents: 28, with 40 utterances each
:Number of open utterances: 336, half of them near the known intents and half far from them
:Language: English, British and American

=====  =====  =========  ========
Part   Known  Open near  Open far
=====  =====  =========  ========
train    672          0         0
dev      168         84        84
test     280         84        84
=====  =====  =========  ========

The utterances were written by hand for this package, from no template and from no other data set. Within an intent
they differ on purpose: terse commands, short and long requests, questions, remarks that never name the obvious
keyword, typing errors, chat spelling. Known intents are alarms, timers, reminders, weather, music, lights, heating,
shopping lists, recipes, food delivery, restaurants, flights, hotels, taxis, directions, traffic, translation, word
meanings, units, calendar (add and check), messages, calls, parcels, returns, and three of banking.

*Open near* utterances come from the same domains and ask for something else ("is the back door locked", beside an
intent that switches lights). *Open far* ones are small talk, general knowledge, noise and the like.

The parts were drawn once, at random: 24 train, 6 dev and 10 test utterances of each known intent; the open ones are
divided evenly between dev and test, and none is in train.

The corpus is small and clean. It serves to try things out and to test them; it is no benchmark.

:Licence: BSD-3-Clause, as the package
"""


def load_assistant_intents(*, subset: str = "train", open_label: int | str = -1, return_X_y: bool = False) -> Any:
    """Load the corpus of requests to a general assistant that ships with the package.

    It has 28 known intents with 40 utterances each, and 336 open utterances, half of them near the known intents
    (same domain, other request) and half far from them. Nothing is downloaded.

    ========  =====  =========  ========
    subset    known  open near  open far
    ========  =====  =========  ========
    train       672          0         0
    dev         168         84        84
    test        280         84        84
    ========  =====  =========  ========

    Parameters
    ----------
    subset : {"train", "dev", "test", "all"}, default="train"
        The part to load. "all" is train, dev and test, in this order.
    open_label : int or str, default=-1
        The label of the open utterances, as a string: -1 becomes ``"-1"``.
    return_X_y : bool, default=False
        If true, return ``(data, target)`` instead of the Bunch.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        With the attributes

        data : ndarray of shape (n_samples,), of objects
            The utterances.
        target : ndarray of shape (n_samples,), of strings
            The intent of each utterance; the open label for open ones.
        target_names : list of str
            The 28 known intents, sorted. The open label is not among them.
        open_kind : ndarray of shape (n_samples,), of strings
            ``"near"`` or ``"far"`` for open utterances, ``""`` for known ones.
        split : ndarray of shape (n_samples,), of strings
            The part that each utterance belongs to.
        DESCR : str
            The description of the corpus.
        filename : str
            The name of the file in the package.
        data_module : str
            The place of the file in the package.

    (data, target) : tuple if ``return_X_y`` is true
        The arrays of these names, as above.

    Raises
    ------
    ValueError
        If ``subset`` is unknown, or if ``open_label`` is the name of a known intent.

    See Also
    --------
    make_open_blobs : Synthetic features with a known boundary.

    Examples
    --------
    >>> from skellipsoid.datasets import load_assistant_intents
    >>> train = load_assistant_intents()
    >>> train.data.shape, len(train.target_names)
    ((672,), 28)
    >>> texts, intents = load_assistant_intents(subset="test", return_X_y=True)
    >>> print(f"{texts[0]} -> {intents[0]}")
    Calendar: book club Thursday -> add_calendar_event
    >>> int((intents == "-1").sum())
    168
    """
    if subset not in (*_PARTS, "all"):
        raise ValueError(f"subset={subset!r} names no part of the data: use 'train', 'dev', 'test' or 'all'.")
    resource = files("skellipsoid.datasets").joinpath("data", _FILENAME)
    rows = [line.split("\t") for line in resource.read_text(encoding="utf-8").split("\n")[1:] if line]
    target_names = sorted({label for _, label, _ in rows if not label.startswith(_OPEN_PREFIX)})
    open_text = str(open_label)
    if open_text in target_names:
        raise ValueError(f"open_label={open_label!r} is one of the {len(target_names)} known classes: use another.")

    rows = [row for part in _PARTS for row in rows if row[0] == part and subset in (part, "all")]
    splits, labels, texts = zip(*rows, strict=True)
    kinds = [label.removeprefix(_OPEN_PREFIX) if label.startswith(_OPEN_PREFIX) else "" for label in labels]
    data = np.array(texts, dtype=object)
    target = np.array([open_text if kind else label for label, kind in zip(labels, kinds, strict=True)])
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        target_names=target_names,
        open_kind=np.array(kinds),
        split=np.array(splits),
        DESCR=_DESCR,
        filename=_FILENAME,
        data_module=_DATA_MODULE,
    )
