"""The folder of downloaded files: its place, the check of its files, and downloads."""

import hashlib
import os
from pathlib import Path
from typing import TypeAlias

from skellipsoid._base import warn

PathLike: TypeAlias = str | os.PathLike[str]

_BASE_URL = "https://raw.githubusercontent.com/thuiar/TEXTOIR/82212b0/data/"
#: Files that are not below the first address, at the commits at which they are as in ``_SHA256``.
_HINT3 = "https://raw.githubusercontent.com/hellohaptik/HINT3"
_TRAIN = f"{_HINT3}/e84a0c315f77a3f0b995f7335063a1e31bccddaa/dataset/train"
_URLS = {
    "real/sofmattress_train.csv": f"{_TRAIN}/sofmattress_train.csv",
    "real/sofmattress_subset_train.csv": f"{_TRAIN}/sofmattress_subset_train.csv",
    "real/sofmattress_test.csv": (
        f"{_HINT3}/9d6b72d8cfd2665c495dc2c300c307f2a69e2f3e/dataset/v2/test/sofmattress_test.csv"
    ),
    "real/sofmattress_test_v1.csv": (
        f"{_HINT3}/9840f99c3512acba59eb35ab8a374e7ea200f130/dataset/test/sofmattress_test.csv"
    ),
}
_HOME_VARIABLE = "SKELLIPSOID_DATA"
_DEFAULT_HOME = Path("~", "skellipsoid_data")
_TIMEOUT = 30.0  # seconds
_RETRIES = 1

_SHA256 = {
    "banking/dev.tsv": "b808b9f0b01574ca30d233fa690f43b8c44899a0ce1a737be66b06e1132802a7",
    "banking/test.tsv": "684f0b9df082f50ae78243fd56b99d5c8f7debbbfb7086d6df9c5d08ced7d574",
    "banking/train.tsv": "ed07418e59a34b76baad3dc697f3ede12139cd8f56e7a746fb38ab78d2b4d196",
    "oos/dev.tsv": "1521dc5f6257aecc8f49fbbeba9d84183b9971d93643474773acce1b5db94433",
    "oos/test.tsv": "985b661390dde5b953d5a740a306cc17eeaaeebdcf2e52d1515e91e85d1904a3",
    "oos/train.tsv": "118f91b1913102683ea3c6533b8cf9b7715a370c72916c6723fc113073db2724",
    "real/sofmattress_subset_train.csv": "ad41c20c4d9f5e2e3cda22b12d2878c3354ac485ead5c4a55ecc3574e83d3b75",
    "real/sofmattress_test.csv": "9c4746f7cf445b5db276260e1c05b9e7b102fa2bca0ce1ace20f51df0ba53aae",
    "real/sofmattress_test_v1.csv": "8d36c0e5d49225f07b8cf5ee582e0a083479af97cbd612e104099176a9648043",
    "real/sofmattress_train.csv": "0addf4dc4b9df1e71509da5318d5a9f6e9a5d6eb98b9584d55cab3da7badf4b1",
    "stackoverflow/dev.tsv": "5d254ef1e451ca1800002e9c8b6bcd5934346830f74a52f661c76d26ae84ede5",
    "stackoverflow/test.tsv": "cb32a79f7aa316c67742d3df534a45775961446eda09627081baa06099095a74",
    "stackoverflow/train.tsv": "b3e51761676a93b71bd4572c6f5789693a885d2ea001601c014fdf3f3d85800b",
}


def local_files(names: dict[str, str], data_home: PathLike | None, *, download_if_missing: bool) -> dict[str, Path]:
    """Return the complete files of one data set by part, after downloading missing or damaged ones.

    Parameters
    ----------
    names : dict of str
        The file of each part: its path in ``data_home``.
    data_home : str, path-like or None
        ``None`` is the folder that the environment names, else one in the user's home.
    download_if_missing : bool
        If false, a missing or damaged file is an error.
    """
    if data_home is None:
        data_home = os.environ.get(_HOME_VARIABLE) or _DEFAULT_HOME
    home = Path(data_home).expanduser()
    for name in names.values():
        problem = _problem(home, name)
        if problem and not download_if_missing:
            raise OSError(f"{problem} and download_if_missing is False: {_where_to_put(home, name)}.")
        if problem:
            _download(home, name, problem)
    return {part: home / name for part, name in names.items()}


def _problem(home: Path, name: str) -> str:
    """Describe the defect of a file; empty if it is as published."""
    path = home / name
    if not path.exists():
        return f"{path} does not exist"
    if not path.is_file():
        return f"{path} is not a file"
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found == _SHA256[name]:
        return ""
    return f"{path} is damaged or changed (SHA-256 {found} instead of {_SHA256[name]})"


def _download(home: Path, name: str, problem: str) -> None:
    """Put a file in its place; pooch writes beside it, checks the SHA-256, and renames."""
    path = home / name
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"{problem}, and downloading it needs pooch: pip install 'skellipsoid-bench[datasets]', "
            f"or {_where_to_put(home, name)}."
        ) from error

    if path.exists():
        warn(f"{problem}; downloading it again.")  # at the caller of fetch_*
    cache = pooch.create(
        path=home,
        base_url=_BASE_URL,
        registry={name: f"sha256:{_SHA256[name]}"},
        urls={name: _url(name)},
        retry_if_failed=_RETRIES,
    )
    # The files are small; read as a stream, a request that fails would leave its connection open.
    downloader = pooch.HTTPDownloader(timeout=_TIMEOUT, stream=False)
    try:
        cache.fetch(name, downloader=downloader)
    except (OSError, ValueError) as error:  # no network, no such address, no right to write; a wrong SHA-256
        raise OSError(
            f"{problem}, and it could not be downloaded from {_url(name)} ({error}): "
            f"try again, or {_where_to_put(home, name)}."
        ) from error


def _url(name: str) -> str:
    """Return the public address of a file."""
    return _URLS.get(name, _BASE_URL + name)


def _where_to_put(home: Path, name: str) -> str:
    """Say how to provide a data set's files without a download from here."""
    folder = Path(name).parent.name
    if name in _URLS:
        source = f"get {Path(name).name} from {_url(name)} by other means and put it"
    else:
        source = f"get train.tsv, dev.tsv and test.tsv from {_BASE_URL}{folder}/ by other means and put them"
    return f"{source} into {home / folder}, or pass as data_home a folder that holds them in its subfolder {folder!r}"
