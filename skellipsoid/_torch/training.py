"""The training loop of all models: epochs, progress, early stopping."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .progress import progress_bar

#: What ``auto_batch_size`` aims at; chosen by hand.
_STEPS_PER_EPOCH, _SMALLEST_BATCH, _LARGEST_BATCH = 16, 16, 128


@dataclass
class History:
    """Losses and scores, one entry per epoch."""

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    best_epoch: int = 0
    stopped_early: bool = False
    #: Positions of samples that were held out.
    held_out: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def n_iter(self) -> int:
        """Number of epochs."""
        return len(self.losses)


def run_epochs(
    run_epoch: Callable[[], float],
    *,
    max_iter: int,
    n_iter_no_change: int,
    tol: float,
    score: Callable[[], float] | None = None,
    loss_breaks_ties: bool = True,
    keep_best: Callable[[], object] | None = None,
    label: str = "",
    verbose: int | bool = 0,
) -> History:
    """Run epochs with early stopping.

    As in scikit-learn's ``MLPClassifier``: training stops when the score of the validation samples (or, without
    ``score``, the training loss) has not improved by more than ``tol`` for ``n_iter_no_change`` epochs in a row.

    Parameters
    ----------
    run_epoch : callable
        Trains one epoch and returns the mean loss per sample.
    max_iter : int
        Largest number of epochs.
    n_iter_no_change : int
    tol : float
    score : callable, optional
        Score of the validation samples, higher is better; called after each epoch.
    loss_breaks_ties : bool
        Whether an epoch with an equal score and a smaller loss is better.
    keep_best : callable, optional
        Called when the score is the best so far, to copy the model.
    label : str
        Label of the progress bar.
    verbose : int or bool
        Whether to show a progress bar, if standard error is a terminal or a notebook.
    """
    history = History()
    best, bar_to_beat, waited = (-np.inf, -np.inf), (-np.inf, -np.inf), 0
    with progress_bar(max_iter, label, "epoch", verbose) as progress:
        for epoch in range(max_iter):
            loss = run_epoch()
            history.losses.append(loss)
            signal = (0.0, -loss)
            if score is not None:
                history.scores.append(score())
                signal = (history.scores[-1], -loss if loss_breaks_ties else 0.0)
            if signal > best:
                best, history.best_epoch = signal, epoch
                if keep_best is not None:
                    keep_best()
            if signal[0] > bar_to_beat[0] + tol or (signal[0] == bar_to_beat[0] and signal[1] > bar_to_beat[1] + tol):
                bar_to_beat, waited = signal, 0
            else:
                waited += 1
            progress.set_postfix(_shown(history), refresh=False)
            progress.update()
            if waited >= n_iter_no_change:
                history.stopped_early = epoch + 1 < max_iter
                progress.total = progress.n  # a bar of 100 %
                progress.refresh()
                break
    return history


def _shown(history: History) -> dict[str, Any]:
    shown = {"loss": f"{history.losses[-1]:.4f}"}
    if history.scores:
        shown["held-out score"] = f"{history.scores[-1]:.4f}"
    return shown


def auto_batch_size(n_rows: int) -> int:
    """Give the batch size that cuts an epoch into about 16 batches, so that small data sets need few epochs too."""
    return min(max(n_rows // _STEPS_PER_EPOCH, _SMALLEST_BATCH), _LARGEST_BATCH)


def shuffled_batches(n_rows: int, batch_size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Divide the shuffled samples into batches of nearly equal size, at most ``batch_size``."""
    yield from np.array_split(rng.permutation(n_rows), -(-n_rows // batch_size))
