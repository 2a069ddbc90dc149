"""Promise: a notebook shows results as tables, whatever the user's labels and texts are."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest

from skellipsoid import EllipsoidOpenSetClassifier, choose_to_label, compare, discover_classes, estimate_open_share
from skellipsoid._core.results import Result


class Cells(HTMLParser):
    """Read the cells of a table; everything else is text."""

    def __init__(self, html):
        super().__init__()
        self.heads, self.rows, self.tags, self.place = [], [], set(), None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.place = tag
        if tag == "tr":
            self.rows.append([])

    def handle_data(self, data):
        if self.place == "th":
            self.heads.append(data)
        elif self.place == "td":
            self.rows[-1].append(data)


@pytest.fixture(scope="module")
def model_and_log():
    rng = np.random.default_rng(0)
    y = np.repeat(["<b>a</b>", "b & c", "c"], 40)
    X = rng.normal(size=(120, 5)) + np.repeat(np.eye(3, 5) * 6, 40, axis=0)
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    return clf, np.concatenate([X + 0.3 * rng.normal(size=X.shape), rng.normal(size=(60, 5)) - 8])


def test_other_results_are_names_and_values(model_and_log):
    clf, log = model_and_log
    found = estimate_open_share(clf, log)
    cells = Cells(found._repr_html_())
    shown = dict(row for row in cells.rows if len(row) == 2)
    assert float(shown["share"]) == pytest.approx(found.share, abs=1e-4)
    assert shown["class_shares"] == "ndarray, 3"
    assert len(Cells(choose_to_label(clf, log, 5)._repr_html_()).rows) == 1 + 5


def test_groups_and_comparisons_are_tables(model_and_log):
    clf, log = model_and_log
    found = discover_classes(clf, log)
    cells = Cells(found._repr_html_())
    assert cells.heads == list(found.table())
    assert len(cells.rows) == 1 + found.n_groups
    other = EllipsoidOpenSetClassifier(beta=1000.0, random_state=0).fit(log[:120] * 1.1, np.repeat(clf.classes_, 40))
    compared = compare(clf, other, log)
    assert compared.n_changed
    assert len(Cells(compared._repr_html_()).rows) == 1 + len(compared.pairs.count)
    assert "<table>" not in compare(clf, clf, log)._repr_html_()


def test_rows_that_json_writes():
    sets = np.array([("a",), ()], dtype=object)
    of_rows = Result(label=np.array(["a", "-1"]), margin=np.float32([0.5, -1]), sets=sets)
    values = Result(share=np.float64(0.25), interval=(np.float64(0), 1.0), counts=np.arange(2), nested={1: np.True_})
    for result, rows in (
        (of_rows, [{"label": "a", "margin": 0.5, "sets": ["a"]}, {"label": "-1", "margin": -1.0, "sets": []}]),
        (values, [{"share": 0.25, "interval": [0.0, 1.0], "counts": [0, 1], "nested": {"1": True}}]),
    ):
        assert json.loads(json.dumps(result.to_dict(orient="records"))) == result.to_dict() == rows
    with pytest.raises(ValueError, match="orient='list' is not allowed: use 'records'"):
        values.to_dict(orient="list")
