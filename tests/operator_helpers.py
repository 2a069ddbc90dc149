"""Counts what torch is asked to do (operators, and values that the host waits for), and calls of functions."""

import sys
from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from skellipsoid._base import Learner
from skellipsoid._encoders.torch.contrastive import _Trainer
from skellipsoid._samples.folds import validation_rows
from skellipsoid._torch import machine

#: Operators that read a value of a tensor on the host: on CUDA the host waits for the device.
_READS = {
    *("_local_scalar_dense", "nonzero", "masked_select", "bincount", "unique_dim", "_unique2", "unique_consecutive"),
    *("repeat_interleave", "equal", "is_nonzero"),
}


class Operators(TorchDispatchMode):
    """Counts operators by name, reads among them, copies to another device, and those that the host waits for.

    Only those of this thread are counted, so it computes alone, however many cores there are.
    """

    def __init__(self):
        super().__init__()
        self.counts, self.reads, self.copies, self.waits = Counter(), Counter(), 0, 0
        self._alone = pytest.MonkeyPatch()

    def __enter__(self):
        self._alone.setattr(machine, "n_threads", lambda: 1)
        return super().__enter__()

    def __exit__(self, *error):
        self._alone.undo()
        return super().__exit__(*error)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = operator._schema.name.removeprefix("aten::")
        self.counts[name] += 1
        if name in _READS:
            self.reads[name] += 1
        if name in ("index", "index_put", "index_put_") and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        ):
            self.reads["Boolean index"] += 1
        if name == "_to_copy" and kwargs.get("device", args[0].device) != args[0].device:
            self.copies += 1
            self.waits += not kwargs.get("non_blocking")
        return operator(*args, **kwargs)

    @property
    def total(self):
        """Number of operators."""
        return self.counts.total()


def trainer_of(rows, classes, projection, settings):
    """What ``train_projection`` runs, for four classes."""
    rng, held = np.random.default_rng(0), np.zeros(len(classes), dtype=bool)
    if settings.early_stopping:
        held = validation_rows(classes, settings.validation_fraction, rng)
    learner = Learner(rows, projection, classes, 4, np.flatnonzero(~held), settings, rng)
    return _Trainer(learner, np.flatnonzero(held))


def calls(function):
    """Call a function, and count by name what is called in it, of Python and of C: ``(counts, result)``."""
    counts = Counter()

    def on_event(frame, event, called):
        if event == "call":
            counts[frame.f_code.co_name] += 1
        elif event == "c_call":
            counts[called.__name__] += 1

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        found = function()
    finally:
        sys.setprofile(before)
    return counts, found
