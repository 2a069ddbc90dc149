"""Promise: what ``load`` would refuse, ``save`` refuses before it changes anything."""

import numpy as np
import pytest
from persistence_helpers import make_encoder, snapshot
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skellipsoid import EllipsoidOpenSetClassifier, OpenShareMonitor, TunedOperatingPointCV, baselines, save
from skellipsoid.model_selection import OpenSetKFold

BROKEN = {
    "a number that is none": lambda clf: setattr(clf, "offset_", np.nan),
    "a parameter out of its range": lambda clf: clf.set_params(alpha=-3.0),
    "classes that are not in order": lambda clf: setattr(clf, "classes_", clf.classes_[::-1]),
    "offsets of other classes": lambda clf: setattr(clf, "class_offsets_", np.zeros(3)),
    "what is gone": lambda clf: delattr(clf, "class_offsets_"),
    "traffic of no numbers": lambda clf: setattr(clf, "traffic_", {"open_share": np.nan}),
}


@pytest.fixture
def folder(classifier, tmp_path):
    """Folder of a model that answers."""
    save(classifier, tmp_path / "model")
    return tmp_path / "model"


def assert_refused(estimator, folder, part=""):
    before = snapshot(folder)
    with pytest.raises(ValueError, match=rf"^The estimator cannot be saved, because load .*{part}.*; fit it again, or"):
        save(estimator, folder, overwrite=True)
    assert snapshot(folder) == before


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_a_classifier_that_could_not_be_loaded_leaves_the_model_before(blobs, folder, change):
    X, y = blobs
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    change(clf)
    assert_refused(clf, folder)
    assert_refused(make_pipeline(StandardScaler().fit(X), clf), folder)


@pytest.mark.parametrize("wrap", ["watched", "tuned", "step"])
def test_wherever_the_classifier_is_it_is_found(blobs, folder, wrap):
    X, y = blobs
    clf = EllipsoidOpenSetClassifier(random_state=0).fit(X, y)
    if wrap == "tuned":
        tuned = TunedOperatingPointCV(baselines.BallClassifier(), rejection_rate=0.1, cv=OpenSetKFold(3))
        whole = tuned.fit(X, y + (X[:, 1] > 0))
        clf = whole.estimator_
    elif wrap == "watched":
        whole = OpenShareMonitor(clf).fit(X)
    else:
        whole = make_pipeline(StandardScaler().fit(X), FrozenEstimator(clf))
    clf.offset_ = np.nan
    assert_refused(whole, folder, "offset_ of the .* is nan")


def test_an_encoder_with_another_width_is_refused(tiny_model, texts, labels, folder):
    encoder = make_encoder(tiny_model).fit(texts, labels)
    encoder.weight_ = encoder.weight_[:, 1:]
    assert_refused(encoder, folder)
