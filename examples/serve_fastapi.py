"""Answer HTTP requests with a saved model: ``SKELLIPSOID_MODEL=my-model uvicorn serve_fastapi:app``."""

import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel, Field, ValidationError
from starlette.requests import ClientDisconnect

MOST_BYTES, MOST_CHARACTERS = 2**20, 20_000  # of one request
Text = Annotated[str, Field(min_length=1, max_length=2000)]


class Query(BaseModel):
    texts: Annotated[list[Text], Field(min_length=1, max_length=256)]


SCHEMA = Query.model_json_schema()  # for the page /docs


async def read(request: Request) -> Query:  # FastAPI's own way has no limit, and its errors repeat the input
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                raise HTTPException(413, f"the body has more than {MOST_BYTES} bytes")
        query = Query.model_validate_json(body)
    except ClientDisconnect:
        raise HTTPException(400, "the body is incomplete") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[:1]
        raise HTTPException(422, first) from None
    if sum(map(len, query.texts)) > MOST_CHARACTERS:
        raise HTTPException(422, f"the texts have more than {MOST_CHARACTERS} characters")
    return query


def load(folder):
    """Give a function that answers texts, and the fitted classes; an exported model needs skellipsoid-runtime alone."""
    if (Path(folder) / "skellipsoid_onnx.json").is_file():
        from skellipsoid_runtime import OnnxPipeline

        model = OnnxPipeline(folder)
        return model.answers, model
    import skellipsoid

    pipe = skellipsoid.load(folder)
    encoder, classifier = pipe[:-1], pipe[-1]

    def answers(texts):
        features = encoder.transform(texts)  # texts are embedded once
        return {"label": classifier.predict(features), "score": classifier.score_samples(features)}

    return answers, classifier


@asynccontextmanager
async def lifespan(app):
    app.state.answers, app.state.model = load(os.environ["SKELLIPSOID_MODEL"])
    app.state.answers(["compute once before the first request comes"])
    yield


app = FastAPI(lifespan=lifespan)


@app.post("/predict", openapi_extra={"requestBody": {"content": {"application/json": {"schema": SCHEMA}}}})
def predict(query: Annotated[Query, Depends(read)]):  # no "async": FastAPI runs it in threads, which share the model
    found = app.state.answers(query.texts)
    answers = zip(query.texts, found["label"].tolist(), found["score"].tolist(), strict=True)
    return [{"text": text, "label": label, "score": score} for text, label, score in answers]


@app.get("/health")
async def health():  # "async": answered also while all threads compute
    return {"status": "ok"}


@app.get("/model")
async def model():
    found = app.state.model
    program = type(found).__module__.partition(".")[0]
    return {"classes": found.classes_.tolist(), "open_label": found.open_label_, "program": program}
