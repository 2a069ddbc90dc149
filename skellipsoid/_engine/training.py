"""The one training loop: epochs, progress, early stopping. It knows neither model nor data."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .progress import close_early, progress_bar


@dataclass
class History:
    """What happened: one entry per epoch."""

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    best_epoch: int = 0

    @property
    def n_iter(self) -> int:
        """Number of epochs that ran."""
        return len(self.losses)


def run_epochs(
    run_epoch: Callable[[], float],
    *,
    max_iter: int,
    n_iter_no_change: int,
    tol: float,
    score: Callable[[], float] | None = None,
    keep_best: Callable[[], object] | None = None,
    label: str = "",
    verbose: int | bool = 0,
) -> History:
    """Run epochs until nothing improves any more.

    As in scikit-learn's ``MLPClassifier``: training stops when the score on held-out rows (or, without ``score``, the
    training loss) has not improved by more than ``tol`` for ``n_iter_no_change`` epochs in a row.

    Parameters
    ----------
    run_epoch : callable
        Trains one epoch and returns the mean loss per row.
    max_iter : int
        Most epochs.
    n_iter_no_change, tol
        When to stop.
    score : callable, optional
        The score on held-out rows, higher is better; called after each epoch.
    keep_best : callable, optional
        Called when the score is the best so far, in order to take a copy of the model.
    label : str
        What the progress bar says.
    verbose : int or bool
        Whether there is a progress bar, where standard error is a terminal or a notebook.
    """
    history = History()
    best, bar_to_beat, waited = (-np.inf, -np.inf), (-np.inf, -np.inf), 0
    with progress_bar(max_iter, label, "epoch", verbose) as progress:
        for epoch in range(max_iter):
            loss = run_epoch()
            history.losses.append(loss)
            if score is not None:
                history.scores.append(score())
            # Where held-out rows cannot tell two epochs apart (all are told apart, say), the loss may.
            signal = (history.scores[-1], -loss) if score is not None else (0.0, -loss)
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
                close_early(progress)
                break
    return history


def _shown(history: History) -> dict[str, Any]:
    shown = {"loss": f"{history.losses[-1]:.4f}"}
    if history.scores:
        shown["held-out score"] = f"{history.scores[-1]:.4f}"
    return shown


def shuffled_batches(n_rows: int, batch_size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Cut a random order of the rows into batches of nearly equal size, none larger than ``batch_size``."""
    yield from np.array_split(rng.permutation(n_rows), -(-n_rows // batch_size))


def held_out_rows(
    classes: np.ndarray, fraction: float, rng: np.random.Generator, blocks: np.ndarray | None = None
) -> np.ndarray:
    """Mark a share of each class's rows as held out, (n_rows,) Boolean.

    Rows with the same number in ``blocks`` are held out together; without it every row is by itself. Every class keeps
    at least one block for training, and a class of two blocks or more holds out at least one, unless blocks that hold
    rows of several classes make that impossible.
    """
    numbers = np.arange(len(classes)) if blocks is None else blocks
    held_out = np.zeros(numbers.max(initial=-1) + 1, dtype=bool)
    for label in np.unique(classes):
        own = numbers[classes == label]
        own = own[np.sort(np.unique(own, return_index=True)[1])]
        n_held_out = min(len(own) - 1, max(1, round(fraction * len(own))))
        n_missing = max(0, n_held_out - int(held_out[own].sum()))
        held_out[rng.permutation(own[~held_out[own]])[:n_missing]] = True
    for label in np.unique(classes):
        own = numbers[classes == label]
        if held_out[own].all():
            held_out[own[0]] = False
    return np.asarray(held_out[numbers])
