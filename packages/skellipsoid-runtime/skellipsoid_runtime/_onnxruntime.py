"""onnxruntime without its telemetry.

Its import writes a number of the device into the home folder, or complains on standard error where that cannot be
written; afterwards only its events can be turned off. A user who sets the variable decides.
"""

import os

_VARIABLE = "ORT_DISABLE_TELEMETRY"
_is_set = _VARIABLE in os.environ
os.environ.setdefault(_VARIABLE, "1")

import onnxruntime  # noqa: E402

if not _is_set:
    del os.environ[_VARIABLE]

__all__ = ["onnxruntime"]
