"""Promise: the report of three answers counts what somebody who reads them counts, under the names of ``asking_``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skellipsoid.metrics import asking_report

NAMES = ["served", "wrong", "asked", "missed", "open_asked", "open_answered"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d", "-1", "strange"]),
        st.sampled_from(["answer", "ask", "open"]),
        st.permutations(["a", "b", "c", "d"]),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=20,
).filter(lambda rows: any(row[3] for row in rows))


def result_of(rows):
    """Give actions and classes, as predict_set does."""
    n_offered = {"answer": 1, "ask": 3, "open": 0}
    classes = [[*names[: n_offered[action]], *["-1"] * (3 - n_offered[action])] for _, action, names, _ in rows]
    return {"action": np.array([row[1] for row in rows]), "classes": np.array(classes)}


@settings(max_examples=40)
@given(ROWS)
def test_it_counts_as_a_reader_does(rows):
    truth, weights = [row[0] for row in rows], [row[3] for row in rows]
    found = asking_report(truth, result_of(rows), labels=["a", "b", "c", "d"], sample_weight=weights)
    expected = dict.fromkeys(NAMES, 0)
    n_known = sum(weight for label, *_, weight in rows if label in "abcd")
    n_open = sum(row[3] for row in rows) - n_known
    for label, action, names, weight in rows:
        if label not in "abcd":
            expected["open_asked"] += weight * (action == "ask")
            expected["open_answered"] += weight * (action == "answer")
            continue
        is_right = action == "answer" and names[0] == label
        expected["served"] += weight * is_right
        expected["wrong"] += weight * (action == "answer" and not is_right)
        expected["asked"] += weight * (action == "ask")
        expected["missed"] += weight * (not is_right and not (action == "ask" and label in names[:3]))
    assert list(found) == NAMES
    for name, value in found.items():
        n = n_open if name.startswith("open") else n_known
        assert value == pytest.approx(expected[name] / n) if n else np.isnan(value)


@pytest.mark.parametrize(
    ("result", "msg"),
    [
        ({"action": ["maybe"], "classes": [["a"]]}, "^result holds the action 'maybe'; pass what predict_set returns"),
        ({"action": ["ask"], "classes": ["a"]}, r"^result holds classes of 1 dimensions; pass"),
        ({"action": ["ask", "ask"], "classes": [["a"], ["b"]]}, "inconsistent numbers of samples"),
        ({"action": ["ask"], "classes": [[1]]}, "classes"),
    ],
)
def test_what_is_no_result_is_refused(result, msg):
    with pytest.raises(ValueError, match=msg):
        asking_report(["a"], result)
