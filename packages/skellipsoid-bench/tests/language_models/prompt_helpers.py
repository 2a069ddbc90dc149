"""Texts, their answers and a classifier, for the tests of ``PromptOpenSetClassifier``."""

from skellipsoid_bench.language_models import PromptOpenSetClassifier

TRAIN = ["wake me at six", "alarm for noon", "dim the lamp", "lights off", "tell a joke"]
LABELS = ["alarm", "alarm", "light", "light", "-1"]
NEW = ["wake me", "turn the lamp off", "who wrote hamlet", "an alarm", "lights"]
ANSWERS = ["alarm", "light", "-1", "alarm", "light"]
KEY = "sk-Very/Secret.Key-0123456789"


def fitted(server, **params):
    return PromptOpenSetClassifier(**{"base_url": server.url, "max_retries": 2, **params}).fit(TRAIN, LABELS)


def many(n):
    return [f"{'wake me at' if i % 2 else 'dim lamp'} {i}" for i in range(n)]
