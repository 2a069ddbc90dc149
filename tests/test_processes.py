"""Promise: an encoder that several processes train is the one that a single process trains."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skellipsoid import SupConTextEncoder, load

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="torchrun needs libuv there"),
]


def torchrun(environment, *words, cwd=None):
    """Run a script in two processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *map(str, words)]
    environment = environment | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr


#: What each process of torchrun runs: gradients of one batch, then whole fits.
SCRIPT = """
import sys
import numpy as np, torch
from torch import distributed, nn
from skellipsoid import SupConTextEncoder
from skellipsoid._torch.losses import supervised_contrastive_loss
from skellipsoid._torch.shards import Shards

folder, model, *texts = sys.argv[1:]
distributed.init_process_group("gloo")
rank = distributed.get_rank()
kept = {}

shards = Shards.of_group()
rows = torch.from_numpy(np.load(folder + "/rows.npy"))
classes = torch.arange(len(rows)) % 3
for name, batch in (("all", np.arange(len(rows))), ("one", np.array([4]))):
    torch.manual_seed(0)
    layer = nn.Linear(rows.shape[1], 5)
    unused = nn.Parameter(torch.ones(2))
    own = shards.part(batch)
    features = shards.gathered(nn.functional.normalize(layer(rows[np.tile(own, 2)]), dim=1), batch, 2)
    loss = supervised_contrastive_loss(features, classes[shards.order(batch, 2)], 0.1)
    loss.backward()
    shards.sum_gradients([*layer.parameters(), unused])
    kept |= {f"{name}_weight": layer.weight.grad, f"{name}_bias": layer.bias.grad, f"{name}_loss": loss.detach()}
    assert (unused.grad == 0).all()

labels = np.arange(len(texts)) % 4
for loss in ("supcon", "softmax"):
    encoder = SupConTextEncoder(
        model, finetune="full", loss=loss, batch_size=8, max_iter=2, random_state=0, verbose=0
    ).fit(texts, labels)
    kept |= {f"{loss}_curve": encoder.loss_curve_, f"{loss}_features": encoder.transform(texts)}
drawn = SupConTextEncoder(model, finetune="full", batch_size=8, max_iter=1, verbose=0).fit(texts, labels)
kept["drawn"] = drawn.transform(texts)

np.savez(f"{folder}/{rank}.npz", **{name: np.asarray(value) for name, value in kept.items()})
distributed.destroy_process_group()
"""


@pytest.fixture(scope="module")
def trained(build_model, texts, tmp_path_factory, fresh_environment):
    """What two processes found, the model, and the rows."""
    folder = tmp_path_factory.mktemp("processes")
    # Dropout would be drawn for other batches.
    model = build_model(folder / "model", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    np.save(folder / "rows.npy", np.random.default_rng(0).normal(size=(13, 6)).astype(np.float32))
    (folder / "script.py").write_text(SCRIPT)
    torchrun(fresh_environment(), folder / "script.py", folder, model, *texts)
    return [np.load(folder / f"{rank}.npz") for rank in range(2)], model, folder


def test_the_gradient_of_a_batch_is_that_of_one_process(trained):
    import torch
    from torch import nn

    rows = torch.from_numpy(np.load(trained[2] / "rows.npy"))
    for name, batch in (("all", np.arange(13)), ("one", np.array([4]))):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            layer = nn.Linear(6, 5)
        batch = np.tile(batch, 2)
        features, classes = nn.functional.normalize(layer(rows[batch]), dim=1), batch % 3
        # The supervised contrastive loss of each text against all others of the batch, literally.
        similarities, of_anchor = features @ features.T / 0.1, []
        for i, own in enumerate(classes):
            others = np.flatnonzero(np.arange(len(batch)) != i)
            shares = similarities[i, others].log_softmax(0)
            of_anchor.append(-shares[np.flatnonzero(classes[others] == own)].mean())
        loss = torch.stack(of_anchor).mean()
        loss.backward()
        for found in trained[0]:
            np.testing.assert_allclose(found[f"{name}_loss"], loss.detach(), rtol=1e-5)
            np.testing.assert_allclose(found[f"{name}_weight"], layer.weight.grad, atol=1e-5)
            np.testing.assert_allclose(found[f"{name}_bias"], layer.bias.grad, atol=1e-5)
    assert np.abs(trained[0][0]["all_weight"]).max() > 0.01


@pytest.mark.parametrize("loss", ["supcon", "softmax"])
def test_two_processes_train_the_encoder_of_one(loss, trained, texts):
    (first, second), model, _ = trained
    one = SupConTextEncoder(model, finetune="full", loss=loss, batch_size=8, max_iter=2, random_state=0, verbose=0).fit(
        texts, np.arange(len(texts)) % 4
    )
    np.testing.assert_allclose(first[f"{loss}_curve"], one.loss_curve_, rtol=1e-3)
    np.testing.assert_allclose(first[f"{loss}_features"], one.transform(texts), atol=5e-3)
    np.testing.assert_array_equal(first[f"{loss}_features"], second[f"{loss}_features"])


def test_the_script_of_the_guide_trains_an_encoder(minilm, tmp_path, fresh_environment):
    script = Path(__file__).parents[1] / "docs" / "guide" / "train_by_processes.py"
    torchrun(fresh_environment(), script, cwd=tmp_path)
    assert load(tmp_path / "my-encoder").transform(["where is my parcel"]).shape == (1, 384)


def test_without_a_seed_all_processes_have_the_same(trained):
    first, second = trained[0]
    np.testing.assert_array_equal(first["drawn"], second["drawn"])
