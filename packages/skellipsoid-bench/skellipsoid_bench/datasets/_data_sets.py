"""The data sets that the open-intent literature compares on: what they are, and how their files are read."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from ._cache import PathLike, local_files
from ._texts import SUBSETS, read_rows, resolve_open_label, resolve_subset


class DataSet(NamedTuple):
    """A data set: the folder of its files, its description, and the label of its open samples."""

    folder: str
    description: str
    open_label: str | None = None


BANKING77 = DataSet(
    "banking",
    """\
Banking77
---------

:Number of intents: 77, all of them of one online bank
:Number of queries: train 9,003, dev 1,000, test 3,080
:Source: Casanueva et al. (2020), in the split of the TEXTOIR platform (Zhang et al., 2021)
:Licence: CC BY 4.0

The training file has 9,016 rows; 13 of them do not have exactly two fields, because a text holds a line break, and
the literature's protocol skips them.
""",
)
CLINC_OOS = DataSet(
    "oos",
    """\
CLINC150 with out-of-scope queries
----------------------------------

:Number of intents: 150, from 10 domains
:Number of queries: train 15,000, dev 3,000, test 4,500 and 1,200 out of scope
:Source: Larson et al. (2019), in the split of the TEXTOIR platform (Zhang et al., 2021)
:Licence: CC BY 3.0

The out-of-scope queries are in the test part only.
""",
    open_label="oos",
)
STACKOVERFLOW = DataSet(
    "stackoverflow",
    """\
StackOverflow question titles
-----------------------------

:Number of topics: 20
:Number of titles: train 12,000, dev 2,000, test 6,000
:Source: Xu et al. (2015), in the split of the TEXTOIR platform (Zhang et al., 2021)
:Licence: none stated by its publishers; contributions to Stack Overflow are under CC BY-SA
""",
)

MATTRESS = DataSet(
    "real",
    """\
A chat bot of a mattress shop
-----------------------------

:Number of intents: 21
:Number of texts: train 328 (180 in the reduced set), messages of users 397, of which 144 belong to no intent
:Source: Arora et al. (2020), HINT3, version 2 of the messages; version 1 is there, too
:Licence: Open Database License 1.0

The training texts were written for the bot; the test texts are messages of its users.
""",
    open_label="NO_NODES_DETECTED",
)


def read_parts(
    data_set: DataSet,
    subset: str,
    data_home: PathLike | None,
    download_if_missing: bool,
    return_X_y: bool,
    open_label: int | str = -1,
) -> Any:
    """Read the rows of ``subset``."""
    parts = resolve_subset(subset)
    names = {part: f"{data_set.folder}/{part}.tsv" for part in SUBSETS}
    paths = local_files(names, data_home, download_if_missing=download_if_missing)
    rows = {}
    for part in {"train", *parts}:
        with paths[part].open(encoding="utf-8", newline="") as lines:
            rows[part] = read_rows(lines, n_fields=2)
    return as_asked(data_set, rows, parts, paths, open_label, return_X_y)


def as_asked(
    data_set: DataSet,
    rows: dict[str, list[list[str]]],
    parts: tuple[str, ...],
    paths: dict[str, Path],
    open_label: int | str,
    return_X_y: bool,
) -> Any:
    """Give texts and labels of some parts; the classes are those of the training rows."""
    texts, labels = zip(*(row for part in parts for row in rows[part]), strict=True)
    target_names = sorted({label for _, label in rows["train"]})
    if data_set.open_label is not None:
        open_text = resolve_open_label(open_label, target_names)
        labels = tuple(open_text if label == data_set.open_label else label for label in labels)
    data, target = np.array(texts, dtype=object), np.array(labels)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        target_names=target_names,
        split=np.repeat(parts, [len(rows[part]) for part in parts]),
        DESCR=data_set.description,
        filenames=[str(paths[part]) for part in parts],
    )
