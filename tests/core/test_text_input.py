"""What is refused as texts and labels, and the sentences; test_containers.py has what is taken."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skellipsoid import SupConTextEncoder

TEXTS = ["wake me at six", "alarm", "dim the lamp in the kitchen", "lights off"]


@pytest.fixture(scope="module")
def frozen(tiny_model):
    return SupConTextEncoder(tiny_model, finetune="none").fit(TEXTS)


REFUSED = {
    "None": (None, "X is a NoneType, but must be a list, tuple, array or Series"),
    "bare string": ("wake me", r"X is one str, but must be a sequence of strings; pass \[text\]"),
    "bytes": (b"wake me", "X is one bytes, but must be a sequence of strings"),
    "lone surrogate": (["alarm", "me \ud83d"], r"X\[1\] is 'me \\ud83d', which holds half of .* with text\.encode"),
    "None among texts": (["wake me", None], r"X\[1\] is None of type NoneType, .*drop or fill missing .* first\.$"),
    "NaN among texts": (["wake me", float("nan")], r"X\[1\] is nan of type float, .*keep_default_na=False if"),
    "NA in a Series": (pd.Series(["a", pd.NA], dtype="string"), r"X\[1\] is <NA> of type NAType, .*keep_default_na"),
    "a masked text": (np.ma.array(["wake me", "alarm"], mask=[0, 1]), r"X\[1\] is masked of type MaskedConstant, but"),
    "bytes among texts": (["wake me", b"alarm"], r"X\[1\] is b'alarm' of type bytes, .*decode bytes first"),
    "numbers": ([1, 2], r"X\[0\] is 1 of type int"),
    "lists of texts": ([["wake me"], ["alarm"]], r"X\[0\] is \['wake me'\] of type list"),
    "empty list": ([], "X is empty, but must hold at least one text"),
    "2-D array": (np.array([["a", "b"]]), r"X has the shape \(1, 2\), but texts must be one-dimensional"),
    "pandas DataFrame": (pd.DataFrame({"id": ["1"], "text": ["a"]}), r"X has the shape \(1, 2\), .* such as X\['te"),
    "sparse column": (sparse.csr_array((2, 1)), r"X has the shape \(2, 1\)"),
    "dict": ({"text": "a"}, r"X is a dict, .*take \[text for texts in X.values\(\) for text in texts\] as texts, and"),
    "set": ({"a", "b"}, "X is a set, but must be a list"),
}


@pytest.mark.parametrize(("bad", "sentence"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("method", ["fit", "fit_transform", "transform"])
def test_everything_else_is_refused_with_a_sentence(frozen, method, bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        getattr(frozen, method)(bad)


@pytest.mark.parametrize("method", ["fit", "transform"])
def test_a_generator_is_refused_before_it_is_used_up(frozen, method):
    generator = (text for text in TEXTS)
    with pytest.raises(ValueError, match=r"X is a generator, but must be a list, .*pass list\(X\)"):
        getattr(frozen, method)(generator)
    assert list(generator) == TEXTS


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (["alarm", "alarm", "light"], r"inconsistent numbers of samples: \[4, 3\]"),
        (["-1"] * 4, "All 4 texts have the open label -1; y needs at least one known class"),
    ],
)
def test_bad_labels_are_refused_with_a_sentence(tiny_model, bad, sentence):
    with pytest.raises(ValueError, match=sentence):
        SupConTextEncoder(tiny_model, max_iter=1).fit(TEXTS, bad)


@pytest.mark.parametrize(("y", "name"), [(["alarm"] * 4, "'alarm'"), ([3, 3, -1, 3], "3")])
def test_one_known_class_warns_where_fit_was_called(tiny_model, y, name):
    with pytest.warns(UserWarning, match=f"y has the single known class {name},") as caught:
        encoder = SupConTextEncoder(tiny_model, finetune="head", max_iter=2, random_state=0).fit(TEXTS, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert np.isfinite(encoder.transform(TEXTS)).all()
