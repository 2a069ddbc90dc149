"""A server answers on every machine as here: of one core or many, with any locale, without a home to write into."""

import pytest
from machines import COMBINED

from skellipsoid_runtime import OnnxPipeline

TEXTS = ["wake me at six", "ünïcödé 左", "1,5", "tell a joke"]


@pytest.mark.parametrize("machine", COMBINED[:2], indirect=True)
def test_a_server_answers_as_its_model(machine, serve, exported):
    expected = OnnxPipeline(exported).answers(TEXTS)
    with serve(exported) as server:
        status, answers = server.post({"texts": TEXTS})
        assert status == 200
        assert [answer["label"] for answer in answers] == expected["label"].tolist()
        assert [answer["score"] for answer in answers] == pytest.approx(expected["score"].tolist(), abs=1e-5)
        assert server.get("/ready")[0] == 200
        assert "telemetry" not in server.output
