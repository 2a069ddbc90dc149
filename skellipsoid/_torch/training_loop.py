"""The training loop of all models: epochs, progress, early stopping."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .progress import progress_bar


@dataclass
class History:
    """Losses and scores, one entry per epoch."""

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    stopped_early: bool = False
    #: Positions of samples that were held out.
    held_out: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def n_iter(self) -> int:
        """Number of epochs."""
        return len(self.losses)

    @property
    def stop_reason(self) -> str:
        """Why training ended; ``"none"`` without an epoch."""
        if self.stopped_early:
            return "n_iter_no_change"
        return "max_iter" if self.losses else "none"

    @property
    def is_flat(self) -> bool:
        """Whether no score is better than the first, which is not the best possible one, although the loss fell."""
        return bool(self.scores) and max(self.scores) <= self.scores[0] < 1 and self.losses[-1] < self.losses[0]


def run_epochs(
    run_epoch: Callable[[], float],
    *,
    max_iter: int,
    n_iter_no_change: int,
    tol: float,
    score: Callable[[], float] | None = None,
    keep_best: Callable[[], object] | None = None,
    label: str,
    waits_while_flat: bool = False,
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
    keep_best : callable, optional
        Called when the score (or without one the loss) is the best so far, to copy the model. Of equally good epochs
        the first is the best.
    label : str
        Label of the progress bar.
    waits_while_flat : bool
        Whether training goes on while its loss falls and no score was better than the first.
    verbose : int or bool
        Whether to show a progress bar, if standard error is a terminal or a notebook.
    """
    history = History()
    best, bar_to_beat, waited = -np.inf, -np.inf, 0
    with progress_bar(max_iter, label, "epoch", verbose) as progress:
        for _ in range(max_iter):
            loss = run_epoch()
            history.losses.append(loss)
            quality = -loss
            if score is not None:
                quality = score()
                history.scores.append(quality)
            if quality > best:
                best = quality
                if keep_best is not None:
                    keep_best()
            if quality > bar_to_beat + tol:
                bar_to_beat, waited = quality, 0
            else:
                waited += 1
            progress.set_postfix(_shown(history), refresh=False)
            progress.update()
            is_learning = waits_while_flat and history.is_flat and _falls(history.losses, n_iter_no_change)
            if waited >= n_iter_no_change and not is_learning:
                history.stopped_early = history.n_iter < max_iter
                progress.total = progress.n  # a bar of 100 %
                progress.refresh()
                break
    return history


def _falls(losses: list[float], n_last: int) -> bool:
    """Whether the last losses go below those before."""
    return len(losses) > n_last and min(losses[-n_last:]) < min(losses[:-n_last])


def _shown(history: History) -> dict[str, Any]:
    shown = {"loss": f"{history.losses[-1]:.4f}"}
    if history.scores:
        shown["held-out score"] = f"{history.scores[-1]:.4f}"
    return shown


def shuffled_batches(n_rows: int, batch_size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Divide the shuffled samples into batches of nearly equal size, at most ``batch_size``."""
    yield from np.array_split(rng.permutation(n_rows), -(-n_rows // batch_size))
