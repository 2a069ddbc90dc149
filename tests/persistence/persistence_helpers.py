"""Small models to be saved, and what a folder holds."""

from pathlib import Path

from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder

MANIFEST = "skellipsoid.json"


def snapshot(folder):
    """Every file below a folder with its content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in Path(folder).rglob("*") if p.is_file()}


def make_encoder(model, finetune="head", **parameters):
    chosen = {"temperature": 0.3, "max_iter": 4, "learning_rate": 1e-3, "random_state": 0} | parameters
    return SupConTextEncoder(model, finetune=finetune, **chosen)


def make_pipeline(model, seed=0):
    return Pipeline(
        [
            ("enc", make_encoder(model, n_components=6, random_state=seed)),
            ("clf", EllipsoidOpenSetClassifier(random_state=seed, max_iter=5)),
        ]
    )
