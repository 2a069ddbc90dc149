"""Predict a column of texts on Spark: python with_spark.py /data/my-model, a folder that all workers can read."""

import sys
from collections.abc import Iterator

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.functions import pandas_udf

import skellipsoid

folder = sys.argv[1]
spark = SparkSession.builder.getOrCreate()


@pandas_udf("string")
def intent(batches: Iterator[pd.Series]) -> Iterator[pd.Series]:
    model = skellipsoid.load(folder)  # once for each partition
    for texts in batches:
        yield pd.Series(model.predict(texts.tolist()))


new = ["where is my parcel", "tell me a joke"]
rows = spark.createDataFrame([(text,) for text in new], ["text"])
rows.withColumn("intent", intent("text")).show()
