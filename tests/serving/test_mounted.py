"""The application inside another one, whose lifespan it does not get."""

import asyncio
import json

from fastapi import FastAPI

from skellipsoid_runtime.serve import Settings, create_app

SOON = Settings(watch_seconds=0.05)


async def call(app, method, path, body=None):
    """Status and answer of a request, by the protocol ASGI alone."""
    received = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    sent, answered = [], asyncio.Event()

    async def receive():
        if received:
            return received.pop()
        await answered.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    head = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "query_string": b""}
    headers = [(b"content-type", b"application/json")]
    scope = head | {"method": method, "path": path, "raw_path": path.encode(), "root_path": "", "headers": headers}
    await app(scope, receive, send)
    answered.set()
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


def test_a_mounted_application_answers_and_takes_new_models(exported, exported_later, texts, tmp_path):
    pointer = tmp_path / "current"
    pointer.write_text(str(exported))
    app = FastAPI()
    app.mount("/nlu", create_app(pointer, SOON))

    async def main():
        assert await call(app, "GET", "/nlu/ready") == (200, {"status": "ready"})
        first = await call(app, "POST", "/nlu/predict", {"text": texts[0]})
        pointer.write_text(str(exported_later))
        for _ in range(400):
            if (later := await call(app, "POST", "/nlu/predict", {"text": texts[0]})) != first:
                break
            await asyncio.sleep(0.02)
        return first, later

    found = asyncio.run(main())
    assert [(status, answer["label"]) for status, answer in found] == [(200, "alarm"), (200, "ALARM")]
