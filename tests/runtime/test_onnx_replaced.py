"""An export that is replaced while it is opened: the answers are those of one model, under its own names."""

import itertools
import shutil

import numpy as np
import pytest
from export_helpers import changed_manifest

import skellipsoid
import skellipsoid_runtime._folder
import skellipsoid_runtime._pipeline
from skellipsoid_runtime import OnnxPipeline

NAMES = [["left", "right"], ["zulu", "alpha"]]
NUMBERS = itertools.count()
X = np.array([[0.0, 0.0], [9.0, 9.0], [500.0, -500.0]])


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Folders of two exports whose classes lie at the same places, under names in another order."""
    features = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0.0], [9.0]], 20, axis=0)
    folders = []
    for names in NAMES:
        classifier = skellipsoid.EllipsoidOpenSetClassifier(random_state=0).fit(features, np.repeat(names, 20))
        folders.append(tmp_path_factory.mktemp("exports") / names[0])
        skellipsoid.export_onnx(classifier, folders[-1])
    return folders


def put(source, target):
    """Let an export take the place of another one, as ``export_onnx`` does."""
    copy = shutil.copytree(source, target.with_name("copy"))
    changed_manifest(copy, exported=next(NUMBERS))
    if target.exists():
        target.replace(target.with_name("before"))
    copy.replace(target)
    shutil.rmtree(target.with_name("before"), ignore_errors=True)


#: What is called while a model is opened.
CALLED = [
    (skellipsoid_runtime._folder, "_read"),
    (skellipsoid_runtime._session, "check_graph"),
    (skellipsoid_runtime._session.onnxruntime, "InferenceSession"),
]


def test_a_replaced_export_is_one_model_at_every_moment(exports, tmp_path, monkeypatch):
    """Another export takes its place before or after any step of opening it."""
    for last in itertools.count(1):
        put(exports[0], tmp_path / "model")
        moments = itertools.count(1)

        def between(original, last=last, moments=moments):
            def moment():
                if next(moments) == last:
                    put(exports[1], tmp_path / "model")

            def call(*given, **options):
                moment()
                found = original(*given, **options)
                moment()
                return found

            return call

        with monkeypatch.context() as patch:
            for module, name in CALLED:
                patch.setattr(module, name, between(getattr(module, name)))
            answers = OnnxPipeline(tmp_path / "model").predict(X).tolist()
        assert answers in [[*names, "-1"] for names in NAMES], last
        if next(moments) <= last:
            break
    assert last > len(CALLED)


def test_an_export_that_changes_all_the_time_is_refused(exports, tmp_path, monkeypatch):
    put(exports[0], tmp_path / "model")
    read, number = skellipsoid_runtime._folder._read, itertools.count(1)

    def read_changed(path, sizes):
        if path.name == "model.onnx":
            put(exports[next(number) % 2], tmp_path / "model")
        return read(path, sizes)

    monkeypatch.setattr(skellipsoid_runtime._folder, "_read", read_changed)
    with pytest.raises(ValueError, match=r"^The model in .* was replaced 30 times while it was opened; open it again"):
        OnnxPipeline(tmp_path / "model")
