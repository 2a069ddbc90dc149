"""Log a saved model to MLflow, without pickle, and predict with it: python with_mlflow.py my-model."""

import sys

import mlflow
import pandas as pd

import skellipsoid


class Intents(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        self.model = skellipsoid.load(context.artifacts["folder"])

    def predict(self, context, model_input, params=None):
        texts = model_input["text"].tolist()
        return pd.DataFrame({"label": self.model.predict(texts)})


mlflow.models.set_model(Intents())  # MLflow imports this file again

if __name__ == "__main__":
    folder = sys.argv[1]
    new = pd.DataFrame({"text": ["where is my parcel", "tell me a joke"]})
    labels = skellipsoid.load(folder).predict(new["text"].tolist())
    answers = pd.DataFrame({"label": labels})
    logged = mlflow.pyfunc.log_model(
        name="intents",
        python_model=__file__,
        artifacts={"folder": folder},
        signature=mlflow.models.infer_signature(new, answers),
    )
    print(logged.signature)
    print(mlflow.pyfunc.load_model(logged.model_uri).predict(new))
