"""Answer HTTP requests with a saved model: ``SKELLIPSOID_MODEL=my-model uvicorn serve_fastapi:app``.

``skellipsoid-serve --model my-model`` does the same. Here you can add routes of your own.
"""

import os

from skellipsoid_runtime.serve import Settings, create_app

app = create_app(os.environ["SKELLIPSOID_MODEL"], Settings(wait_ms=5))
