"""Promise: what cannot be saved is refused before anything is written, and foreign folders are left alone."""

import pickle

import numpy as np
import pytest
from persistence_helpers import MANIFEST, snapshot
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, save

# What is refused before anything is written


class Derived(EllipsoidOpenSetClassifier):
    """Whatever it adds would be lost."""


_CORNERS = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0, 0], [9, 9]], 20, axis=0), [0] * 20 + [1] * 20


def test_what_cannot_be_saved_is_refused_and_nothing_is_written(classifier, tmp_path):
    own, foreign = EllipsoidOpenSetClassifier(), MinMaxScaler()
    no_best = GridSearchCV(own, {"alpha": [1.0]}, refit=False, cv=2).fit(*_CORNERS)
    splitter = TunedOperatingPointCV(own, rejection_rate=0.5, cv=ShuffleSplit(2)).fit(*_CORNERS)
    save(classifier, tmp_path / "model")
    before = snapshot(tmp_path)
    lost = Pipeline([("scale", FrozenEstimator(foreign.fit([[0], [1]]))), ("clf", classifier)])
    seeded = pickle.loads(pickle.dumps(classifier)).set_params(random_state=np.random.RandomState(0))
    for estimator, error, sentence in (
        (Pipeline([("scale", foreign), ("clf", own)]), TypeError, "The step 'scale' is a MinMaxScaler, which"),
        (lost, TypeError, r"estimator of FrozenEstimator is a MinMaxScaler, .* use joblib.dump or skops.io.dump for"),
        (no_best, NotFittedError, "This GridSearchCV has refit=False, so .* keeps no fitted estimator; fit it with"),
        (splitter, TypeError, "cv of TunedOperatingPointCV is ShuffleSplit"),
        (Derived(), TypeError, "The estimator is a Derived"),
        (own, NotFittedError, "is not fitted yet"),
        (seeded, TypeError, r"random_state of EllipsoidOpenSetClassifier is RandomState\(MT19937\)"),
    ):
        for name in ("model", "new"):
            with pytest.raises(error, match=sentence):
                save(estimator, tmp_path / name, overwrite=True)
        assert snapshot(tmp_path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


# Folders that exist


CONTENTS = {
    "notes.txt": "mine",
    "damaged": '{"format": "skel',
    "foreign": '{"name": "my-app"}',
    "newer": '{"format": "skellipsoid", "format_version": 2}',
}


@pytest.mark.parametrize("content", [*CONTENTS, None])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_no_saved_model_is_left_alone(classifier, tmp_path, content, overwrite):
    target = tmp_path / "model"
    if content is None:
        target.write_text("mine")
    else:
        target.mkdir()
        (target / (content if content == "notes.txt" else MANIFEST)).write_text(CONTENTS[content])
    before = snapshot(tmp_path)
    sentence = "something other than a saved model, which is left alone" if overwrite else "exists; pass overwrite=True"
    with pytest.raises(FileExistsError, match=sentence):
        save(classifier, target, overwrite=overwrite)
    assert snapshot(tmp_path) == before
