"""Text models that are built from plain data, each slowly enough for other threads to come in between."""

import time

import pytest

from skellipsoid._encoders.torch import backbone


@pytest.fixture
def slow_builds(monkeypatch):
    """Data that were built into models."""
    built, restore = [], backbone.restore

    def build(stored):
        built.append(stored)
        time.sleep(0.05 * len(built))  # the first to begin is the first to end
        return restore(stored)

    monkeypatch.setattr(backbone, "restore", build)
    return built
