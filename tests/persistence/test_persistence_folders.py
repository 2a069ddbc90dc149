"""Promise: what cannot be saved is refused before anything is written, and foreign folders are left alone."""

import pickle

import numpy as np
import pytest
from persistence_helpers import MANIFEST, make_encoder, snapshot
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler

from skellipsoid import EllipsoidOpenSetClassifier, TunedOperatingPointCV, load, save

# What is refused before anything is written


class Derived(EllipsoidOpenSetClassifier):
    """Whatever it adds would be lost."""


_CORNERS = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0, 0], [9, 9]], 20, axis=0), [0] * 20 + [1] * 20


def _refused(tiny_model, classifier, pipeline):
    scaled = Pipeline([("scale", MinMaxScaler()), ("clf", EllipsoidOpenSetClassifier())])
    unfitted = Pipeline([("enc", pipeline["enc"]), ("clf", EllipsoidOpenSetClassifier())])
    random_state = pickle.loads(pickle.dumps(classifier)).set_params(random_state=np.random.RandomState(0))
    return {
        "a foreign step": (scaled, TypeError, "The step 'scale' is a MinMaxScaler, which cannot be saved"),
        "a foreign step in a Pipeline in a Pipeline": (
            Pipeline([("all", Pipeline([("scale", MinMaxScaler())]))]),
            TypeError,
            "The step 'scale' is a MinMaxScaler",
        ),
        "a foreign estimator that is frozen": (
            Pipeline([("scale", FrozenEstimator(MinMaxScaler().fit([[0], [1]]))), ("clf", classifier)]),
            TypeError,
            r"estimator of FrozenEstimator is a MinMaxScaler, .* use joblib.dump or skops.io.dump for everything else",
        ),
        "a search without a best estimator": (
            GridSearchCV(EllipsoidOpenSetClassifier(), {"alpha": [1.0]}, refit=False).set_params(cv=2).fit(*_CORNERS),
            NotFittedError,
            "This GridSearchCV has refit=False, so that its fit keeps no fitted estimator; fit it with refit=True",
        ),
        "a splitter of someone else": (
            TunedOperatingPointCV(EllipsoidOpenSetClassifier(), rejection_rate=0.5, cv=ShuffleSplit(2)).fit(*_CORNERS),
            TypeError,
            "cv of TunedOperatingPointCV is ShuffleSplit",
        ),
        "a foreign estimator": (MinMaxScaler(), TypeError, "The estimator is a MinMaxScaler"),
        "no estimator": ({"a": 1}, TypeError, "The estimator is a dict"),
        "a class": (EllipsoidOpenSetClassifier, TypeError, "The estimator is a ABCMeta"),
        "a derived class": (Derived(), TypeError, "The estimator is a Derived"),
        "an unfitted classifier": (EllipsoidOpenSetClassifier(), NotFittedError, "is not fitted yet"),
        "an unfitted encoder": (make_encoder(tiny_model), NotFittedError, "is not fitted yet"),
        "an unfitted step": (unfitted, NotFittedError, "This EllipsoidOpenSetClassifier instance is not fitted yet"),
        "a generator": (
            random_state,
            TypeError,
            r"random_state of EllipsoidOpenSetClassifier is RandomState\(MT19937\)",
        ),
    }


@pytest.fixture(scope="module")
def refused(tiny_model, classifier, pipeline):
    return _refused(tiny_model, classifier, pipeline)


@pytest.mark.parametrize("case", _refused(None, EllipsoidOpenSetClassifier(), {"enc": None}))
@pytest.mark.parametrize("exists", [False, True])
def test_what_cannot_be_saved_is_refused_and_nothing_is_written(refused, classifier, tmp_path, case, exists):
    estimator, error, sentence = refused[case]
    if exists:
        save(classifier, tmp_path / "model")
    before = snapshot(tmp_path)
    with pytest.raises(error, match=sentence):
        save(estimator, tmp_path / "model", overwrite=True)
    assert snapshot(tmp_path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["model"] * exists


# Folders that exist


def test_a_model_is_replaced_only_if_told_so(saved, other, queries):
    before = snapshot(saved)
    with pytest.raises(FileExistsError, match="exists; pass overwrite=True to replace a model that was saved there"):
        save(other, saved)
    assert snapshot(saved) == before
    (saved / "README.txt").write_text("mine")
    (saved / "notes").mkdir()
    (saved / "notes/parts-of-mine.txt").write_text("mine too")
    save(other, saved, overwrite=True)
    assert load(saved).predict(queries).tolist() == other.predict(queries).tolist()
    names = sorted(p.name.split("-")[0] for p in saved.iterdir())
    assert names == ["README.md", "README.txt", "notes", "parts", MANIFEST]
    assert (saved / "README.txt").read_text() == "mine"
    assert (saved / "notes/parts-of-mine.txt").read_text() == "mine too"


@pytest.mark.parametrize("content", ["notes", "damaged manifest", "foreign manifest", "newer manifest", "file"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_no_saved_model_is_left_alone(classifier, tmp_path, content, overwrite):
    target = tmp_path / "model"
    if content == "file":
        target.write_text("mine")
    else:
        target.mkdir()
        (target / ("notes.txt" if content == "notes" else MANIFEST)).write_text(
            {
                "notes": "mine",
                "damaged manifest": '{"format": "skel',
                "foreign manifest": '{"name": "my-app"}',
                "newer manifest": '{"format": "skellipsoid", "format_version": 2}',
            }[content]
        )
    before = snapshot(tmp_path)
    sentence = "something other than a saved model, which is left alone" if overwrite else "exists; pass overwrite=True"
    with pytest.raises(FileExistsError, match=sentence):
        save(classifier, target, overwrite=overwrite)
    assert snapshot(tmp_path) == before
