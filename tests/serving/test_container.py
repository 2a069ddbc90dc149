"""The steps of the container file, executed in a folder of their own."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import urllib.request
from pathlib import Path

import pytest
import serve_helpers

ROOT = Path(__file__).parents[2]


def steps():
    """Instructions of the container file, with their words as one string."""
    text = (ROOT / "examples/Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
    return [tuple(line.split(" ", 1)) for line in text.splitlines() if line and not line.startswith("#")]


class Root:
    """A folder in which the paths of a container lie."""

    def __init__(self, folder, model):
        self.folder, self.model = folder, model
        paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
        # Neither an index nor a build environment is needed: what the server imports lies in this environment.
        self.environment = {
            "PATH": os.pathsep.join(paths),
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as the option --no-build-isolation, whose value is this
        }

    def inside(self, words):
        """Give words in which each absolute path is one of the folder."""
        return re.sub(r'(?<![\w.:/"])/(?=\w)|(?<=")/(?=\w)', f"{self.folder}/", words)

    def copy(self, words):
        """Execute ``COPY``."""
        source, target = words.split()
        origin = self.model if source == "${MODEL}" else ROOT / source
        shutil.copytree(origin, self.inside(target), ignore=shutil.ignore_patterns("*.egg-info", "build"))

    def run(self, words):
        """Execute ``RUN``: an environment finds the libraries of this one as soon as it is there."""
        for command in self.inside(words).split(" && "):
            done = subprocess.run(
                command, shell=True, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            assert done.returncode == 0, done.stdout
            for packages in self.folder.glob("server/lib/python*/site-packages"):
                # First on the path: the setuptools of a new environment may be old.
                line = f"import sys; sys.path.insert(0, {sysconfig.get_path('purelib')!r})"
                (packages / "libraries.pth").write_text(line)


def test_the_container_holds_the_runtime_and_the_model_alone_and_has_no_rights():
    copied = [words.split()[0] for name, words in steps() if name == "COPY" and not words.startswith("--")]
    assert copied == ["packages/skellipsoid-runtime", "${MODEL}"]
    assert (ROOT / copied[0]).exists()
    (user,) = [words for name, words in steps() if name == "USER"]
    assert user.split(":")[0] not in ("0", "root")


@pytest.mark.slow
def test_the_steps_of_the_container_file_give_a_server_that_answers(tmp_path, exported, texts):
    root = Root(tmp_path / "root", exported)
    root.folder.mkdir()
    started = checked = None
    for name, words in steps():
        if name == "COPY" and not words.startswith("--from"):
            root.copy(words)
        elif name == "RUN":
            root.run(words)
        elif name == "ENV":
            root.environment |= dict(word.split("=") for word in words.split())
        elif name == "CMD":
            started = json.loads(root.inside(words))
        elif name == "HEALTHCHECK":
            checked = json.loads(words.removeprefix("CMD "))
    assert (root.folder / "server/bin/skellipsoid-serve").exists()
    assert started[-2:] == ["--host", "0.0.0.0"]
    command, output = [*started, "--port", "0"], tmp_path / "server.txt"
    with serve_helpers.started(command, output, env=root.environment, cwd=root.folder) as server:
        status, answer = server.post({"text": texts[0]})
        assert (status, answer["label"]) == (200, "alarm")
        (address,) = re.findall(r"urlopen\('(.*?)'\)", checked[-1])
        with urllib.request.urlopen(address.replace(":8000", f":{server.port}"), timeout=10) as response:
            assert response.status == 200
