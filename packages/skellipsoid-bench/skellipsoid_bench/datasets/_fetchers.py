"""Fetchers of the public data sets that the open-intent literature compares on."""

import csv
from typing import Any

from skellipsoid._core.paragraphs import with_paragraphs

from ._cache import PathLike, local_files
from ._data_sets import BANKING77, CLINC_OOS, MATTRESS, STACKOVERFLOW, as_asked, read_parts

_with_paragraphs = with_paragraphs(
    {
        "data_home": """
            ``None`` is the folder that the environment variable ``SKELLIPSOID_DATA`` names, else
            ``~/skellipsoid_data``.
            """,
        "download_if_missing": """
            download_if_missing : bool, default=True
                If false, raise an error when a file is missing or not as published, instead of downloading it.
            """,
        "return_X_y": """
            return_X_y : bool, default=False
                If true, return ``(data, target)`` instead of the Bunch.
            """,
        "errors": """
            OSError
                If a file is missing and cannot be downloaded, or must not be downloaded; the message says where to put
                it.
            ImportError
                If a file is missing and pooch, the extra ``skellipsoid-bench[datasets]``, is not installed.

            Warns
            -----
            UserWarning
                If a file in ``data_home`` is not as published (its SHA-256 differs); it is then replaced by a download.
            """,
    }
)


@_with_paragraphs
def fetch_banking77(
    *,
    subset: str = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load Banking77, downloading it if necessary: 77 fine-grained intents of customers of a bank.

    ========  =======  =======
    subset    queries  intents
    ========  =======  =======
    train       9,003       77
    dev         1,000       77
    test        3,080       77
    ========  =======  =======

    The parts are those of the open-intent literature, as the TEXTOIR platform [2]_ publishes them. Downloading needs
    the extra ``skellipsoid-bench[datasets]``; a folder that already holds the files needs neither it nor a network.

    Licence: CC BY 4.0. If you publish results on it, cite [1]_.

    Parameters
    ----------
    subset : {"train", "dev", "test", "all"}, default="train"
        The part to load. "all" is train, dev and test, in this order.
    data_home : str or path-like, default=None
        Folder that holds, or will hold, the files in its subfolder ``banking``.
        {data_home}
    {download_if_missing}
    {return_X_y}

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``data``, ``target`` and ``split``: text, label and part of each row, arrays of shape (n_samples,);
        ``target_names``: the 77 intents, sorted; ``DESCR``, ``filenames``.
    (data, target) : tuple if ``return_X_y`` is true
        The arrays of these names.

    Raises
    ------
    ValueError
        If ``subset`` is unknown.
    {errors}

    See Also
    --------
    fetch_clinc_oos : 150 intents of ten domains, with out-of-scope queries.
    fetch_stackoverflow : 20 topics of question titles.
    skellipsoid.datasets.load_assistant_intents : A small corpus that ships with the package.

    Notes
    -----
    Rows that do not have exactly two fields are skipped, as the literature's protocol does: 13 of the 9,016 rows of
    the training file. They belong to texts with line breaks. The last line of each such text is kept, with its closing
    quote.

    References
    ----------
    .. [1] I. Casanueva, T. Temčinas, D. Gerz, M. Henderson, I. Vulić, "Efficient Intent Detection with Dual Sentence
       Encoders", Proceedings of the 2nd Workshop on NLP for Conversational AI, 2020.
    .. [2] H. Zhang, X. Li, H. Xu, P. Zhang, K. Zhao, K. Gao, "TEXTOIR: An Integrated and Visualized Platform for Text
       Open Intent Recognition", ACL-IJCNLP, System Demonstrations, 2021.

    Examples
    --------
    >>> from skellipsoid_bench.datasets import fetch_banking77
    >>> train = fetch_banking77()  # doctest: +SKIP
    >>> train.data.shape, len(train.target_names)  # doctest: +SKIP
    ((9003,), 77)
    """
    return read_parts(BANKING77, subset, data_home, download_if_missing, return_X_y)


@_with_paragraphs
def fetch_clinc_oos(
    *,
    subset: str = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    open_label: int | str = -1,
    return_X_y: bool = False,
) -> Any:
    """Load CLINC150, downloading it if necessary: 150 intents of ten domains, and out-of-scope queries.

    ========  =======  =======  ============
    subset    queries  intents  out of scope
    ========  =======  =======  ============
    train      15,000      150             0
    dev         3,000      150             0
    test        5,700      150         1,200
    ========  =======  =======  ============

    The parts are those of the open-intent literature, as the TEXTOIR platform [2]_ publishes them. The out-of-scope
    queries, labelled ``oos`` in the file, are given the open label. Downloading needs the extra
    ``skellipsoid-bench[datasets]``; a folder that already holds the files needs neither it nor a network.

    Licence: CC BY 3.0. If you publish results on it, cite [1]_.

    Parameters
    ----------
    subset : {"train", "dev", "test", "all"}, default="train"
        The part to load. "all" is train, dev and test, in this order.
    data_home : str or path-like, default=None
        Folder that holds, or will hold, the files in its subfolder ``oos``.
        {data_home}
    {download_if_missing}
    open_label : int or str, default=-1
        The label of the out-of-scope queries, as a string: -1 becomes ``"-1"``. Pass ``"oos"`` to keep the file's.
    {return_X_y}

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``data``, ``target`` and ``split``: text, label and part of each row, arrays of shape (n_samples,);
        ``target_names``: the 150 intents, sorted, without the open label; ``DESCR``, ``filenames``.
    (data, target) : tuple if ``return_X_y`` is true
        The arrays of these names.

    Raises
    ------
    ValueError
        If ``subset`` is unknown, or if ``open_label`` is the name of an intent.
    {errors}

    See Also
    --------
    fetch_banking77 : 77 fine-grained intents of one domain.
    fetch_stackoverflow : 20 topics of question titles.
    skellipsoid.datasets.load_assistant_intents : A small corpus that ships with the package.

    References
    ----------
    .. [1] S. Larson, A. Mahendran, J. J. Peper, C. Clarke, A. Lee, P. Hill, J. K. Kummerfeld, K. Leach,
       M. A. Laurenzano, L. Tang, J. Mars, "An Evaluation Dataset for Intent Classification and Out-of-Scope
       Prediction", EMNLP-IJCNLP, 2019.
    .. [2] H. Zhang, X. Li, H. Xu, P. Zhang, K. Zhao, K. Gao, "TEXTOIR: An Integrated and Visualized Platform for Text
       Open Intent Recognition", ACL-IJCNLP, System Demonstrations, 2021.

    Examples
    --------
    >>> from skellipsoid_bench.datasets import fetch_clinc_oos
    >>> test = fetch_clinc_oos(subset="test")  # doctest: +SKIP
    >>> int((test.target == "-1").sum())  # doctest: +SKIP
    1200
    """
    return read_parts(CLINC_OOS, subset, data_home, download_if_missing, return_X_y, open_label)


@_with_paragraphs
def fetch_stackoverflow(
    *,
    subset: str = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Load StackOverflow titles, downloading them if necessary: question titles on 20 topics of programming.

    ========  =======  =======
    subset    titles   topics
    ========  =======  =======
    train      12,000       20
    dev         2,000       20
    test        6,000       20
    ========  =======  =======

    The parts are those of the open-intent literature, as the TEXTOIR platform [2]_ publishes them. Downloading needs
    the extra ``skellipsoid-bench[datasets]``; a folder that already holds the files needs neither it nor a network.

    Licence: the publishers of the selection state none; contributions to Stack Overflow are under CC BY-SA. If you
    publish results on it, cite [1]_.

    Parameters
    ----------
    subset : {"train", "dev", "test", "all"}, default="train"
        The part to load. "all" is train, dev and test, in this order.
    data_home : str or path-like, default=None
        Folder that holds, or will hold, the files in its subfolder ``stackoverflow``.
        {data_home}
    {download_if_missing}
    {return_X_y}

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``data``, ``target`` and ``split``: text, label and part of each row, arrays of shape (n_samples,);
        ``target_names``: the 20 topics, sorted; ``DESCR``, ``filenames``.
    (data, target) : tuple if ``return_X_y`` is true
        The arrays of these names.

    Raises
    ------
    ValueError
        If ``subset`` is unknown.
    {errors}

    See Also
    --------
    fetch_banking77 : 77 fine-grained intents of one domain.
    fetch_clinc_oos : 150 intents of ten domains, with out-of-scope queries.
    skellipsoid.datasets.load_assistant_intents : A small corpus that ships with the package.

    References
    ----------
    .. [1] J. Xu, P. Wang, G. Tian, B. Xu, J. Zhao, F. Wang, H. Hao, "Short Text Clustering via Convolutional Neural
       Networks", Proceedings of the 1st Workshop on Vector Space Modeling for NLP, NAACL-HLT, 2015.
    .. [2] H. Zhang, X. Li, H. Xu, P. Zhang, K. Zhao, K. Gao, "TEXTOIR: An Integrated and Visualized Platform for Text
       Open Intent Recognition", ACL-IJCNLP, System Demonstrations, 2021.

    Examples
    --------
    >>> from skellipsoid_bench.datasets import fetch_stackoverflow
    >>> train = fetch_stackoverflow()  # doctest: +SKIP
    >>> train.target_names[:3]  # doctest: +SKIP
    ['ajax', 'apache', 'bash']
    """
    return read_parts(STACKOVERFLOW, subset, data_home, download_if_missing, return_X_y)


_MATTRESS_FILES = {
    "train": "real/sofmattress_train.csv",
    "train_reduced": "real/sofmattress_subset_train.csv",
    "test": "real/sofmattress_test.csv",
    "test_v1": "real/sofmattress_test_v1.csv",
}


@_with_paragraphs
def fetch_mattress_bot(
    *,
    subset: str = "train",
    data_home: PathLike | None = None,
    download_if_missing: bool = True,
    open_label: int | str = -1,
    return_X_y: bool = False,
) -> Any:
    """Load the chat bot of a mattress shop, downloading it if necessary: its texts, and messages of its users.

    =============  =====  =======  ====
    subset         texts  intents  open
    =============  =====  =======  ====
    train            328       21     0
    train_reduced    180       21     0
    test             397       21   144
    test_v1          397       21   166
    =============  =====  =======  ====

    The training texts are what the shop wrote for its bot; the test texts are what users wrote to it. Open are messages
    that belong to no intent. It is one of three bots of HINT3 [1]_. "train_reduced" leaves out texts that others
    entail. "test_v1" has the labels of the first version, for which predictions of platforms were published.

    Licence: Open Database License 1.0. If you publish results on it, cite [1]_.

    Parameters
    ----------
    subset : {"train", "train_reduced", "test", "test_v1"}, default="train"
        The part to load.
    data_home : str or path-like, default=None
        Folder that holds, or will hold, the files in its subfolder ``real``.
        {data_home}
    {download_if_missing}
    open_label : int or str, default=-1
        The label of open messages, as a string: -1 becomes ``"-1"``.
    {return_X_y}

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``data``, ``target`` and ``split``: text, label and part of each row, arrays of shape (n_samples,);
        ``target_names``: the 21 intents, sorted, without the open label; ``DESCR``, ``filenames``.
    (data, target) : tuple if ``return_X_y`` is true
        The arrays of these names.

    Raises
    ------
    ValueError
        If ``subset`` is unknown, or if ``open_label`` is the name of an intent.
    {errors}

    See Also
    --------
    fetch_clinc_oos : 150 intents of ten domains, with out-of-scope queries.

    References
    ----------
    .. [1] G. Arora, C. Jain, M. Chaturvedi, K. Modi, "HINT3: Raising the bar for Intent Detection in the Wild",
       Proceedings of the First Workshop on Insights from Negative Results in NLP, 2020.

    Examples
    --------
    >>> from skellipsoid_bench.datasets import fetch_mattress_bot
    >>> test = fetch_mattress_bot(subset="test")  # doctest: +SKIP
    >>> len(test.data), int((test.target == "-1").sum())  # doctest: +SKIP
    (397, 144)
    """
    if subset not in _MATTRESS_FILES:
        raise ValueError(f"subset={subset!r} names no part of the data: use {', '.join(map(repr, _MATTRESS_FILES))}.")
    names = {part: _MATTRESS_FILES[part] for part in ("train", subset)}
    paths = local_files(names, data_home, download_if_missing=download_if_missing)
    rows = {}
    for part, path in paths.items():
        with path.open(encoding="utf-8", newline="") as lines:
            rows[part] = list(csv.reader(lines))[1:]
    return as_asked(MATTRESS, rows, (subset,), paths, open_label, return_X_y)
