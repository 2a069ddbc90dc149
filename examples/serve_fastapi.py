"""Answer HTTP requests with a saved model: ``SKELLIPSOID_MODEL=my-model uvicorn serve_fastapi:app``."""

import os
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI
from pydantic import BaseModel, StringConstraints, conlist

import skellipsoid

Text = Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class Query(BaseModel):
    texts: conlist(Text, min_length=1, max_length=256)


@asynccontextmanager
async def lifespan(app):
    app.state.model = skellipsoid.load(os.environ["SKELLIPSOID_MODEL"])
    app.state.model.predict(["build the text model before the first request comes"])
    yield


app = FastAPI(lifespan=lifespan)


@app.post("/predict")
def predict(query: Query):  # no "async": FastAPI runs it in a pool of threads, which may share the model
    features = app.state.model[:-1].transform(query.texts)  # texts are embedded once
    classifier = app.state.model[-1]
    answers = zip(query.texts, classifier.predict(features), classifier.score_samples(features), strict=True)
    return [{"text": text, "label": label.item(), "score": score.item()} for text, label, score in answers]
