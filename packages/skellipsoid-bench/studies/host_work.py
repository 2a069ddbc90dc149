"""What the host does for a text model, which a GPU waits for: no GPU is needed to measure it.

python studies/host_work.py          # PYTHONPATH=FOLDER measures another checkout

CPU time of ``transform`` for a text with the text model stubbed, and operators and reads of a step of full fine-tuning
and of EliDecide. A read of a value makes the host wait for the device.
"""

import statistics
import time
from dataclasses import fields

import numpy as np
import torch
from speed import Operators

from skellipsoid import EliDecide, EllipsoidOpenSetClassifier, SupConTextEncoder, datasets
from skellipsoid._ellipsoid.paper.training import BoundaryTrainer
from skellipsoid._encoders.torch import backbone, contrastive, text_modules

REPEATS = 9


def report(operators, what, n_passes=0):
    """Print the counts; ``n_passes`` reads are those of the text model itself."""
    print(f"  {what:32} {operators.names.total():6} operators {operators.n_reads - n_passes:4} reads")


def transform(texts):
    """Print CPU microseconds for each text; texts are distinct, as a cache would serve the others."""
    encoder = SupConTextEncoder(finetune="none", device="cpu").fit(texts[:1])
    model, vectors = encoder._backbone, {}

    def stub(input_ids, attention_mask):
        shape = (*input_ids.shape, 1)
        return (vectors.setdefault(shape, torch.zeros(1, 1, 1).expand(shape)),)

    model.transformer.forward = stub
    text_modules.token_means = lambda vectors, mask: torch.zeros(len(vectors), model.width)
    backbone.PIECE_TOKENS["cpu"] = backbone.PIECE_TOKENS["cuda"]
    for what, work in {"tokenize": model.tokenize, "transform, model stubbed": encoder.transform}.items():
        seconds = []
        for _ in range(REPEATS):
            start = time.process_time()
            work(texts)
            seconds.append(time.process_time() - start)
        print(f"  {what:32} {1e6 * statistics.median(seconds) / len(texts):6.1f} µs of CPU time for each text")


def tuning(texts, classes):
    """Print what a step of 64 texts is made of, after one to make the state of the optimiser."""
    encoder = SupConTextEncoder(finetune="full", device="cpu")
    encoder.finetune_ = "full"
    chosen = {field.name: getattr(encoder, field.name) for field in fields(contrastive.ContrastiveSettings)}
    settings = contrastive.ContrastiveSettings(**chosen | {"learning_rate": 0.0, "batch_size": 64, "max_iter": 1})
    model = SupConTextEncoder(finetune="none", device="cpu").fit(texts[:1])._backbone
    backbone.PIECE_TOKENS["cpu"] = backbone.PIECE_TOKENS["cuda"]
    passes = []
    model.transformer.register_forward_pre_hook(lambda *given: passes.append(1))
    for n_texts in (64, len(texts)):
        rows = contrastive.TokenRows(model, texts[:n_texts])
        start = contrastive.start_projection(model.width, model.width, 0)
        rng, everything = np.random.default_rng(0), np.arange(n_texts)
        given = rows, start, classes[:n_texts], 1 + classes.max(), everything, settings, rng
        trainer = contrastive._Trainer(contrastive.Learner(*given), everything[:0])
        ((stage, optimizer, _),) = trainer.stages
        trainer._step(stage, np.arange(64), optimizer)
        passes.clear()
        with Operators() as operators:
            trainer._step(stage, np.arange(64), optimizer)
        report(operators, f"tuning step, {n_texts} texts", len(passes))


def elidecide():
    """Print what a step of 128 of 2,000 samples, and one of 8,000, is made of."""
    step = BoundaryTrainer.step
    for n_rows in (2000, 8000):
        y = np.arange(n_rows) % 20
        X = np.random.default_rng(0).normal(size=(n_rows, 64)) + y[:, np.newaxis]
        steps = []

        def counted(trainer, rows, steps=steps):
            with Operators() as operators:
                found = step(trainer, rows)
            steps.append(operators)
            return found

        BoundaryTrainer.step = counted
        EllipsoidOpenSetClassifier(trainer=EliDecide(max_iter=1, batch_size=128), device="cpu").fit(X, y)
        report(steps[-1], f"EliDecide's step, {n_rows} samples")


if __name__ == "__main__":
    data = datasets.load_assistant_intents(subset="train")
    elidecide()
    tuning(list(data.data), np.unique(data.target, return_inverse=True)[1])
    transform(list(data.data))
