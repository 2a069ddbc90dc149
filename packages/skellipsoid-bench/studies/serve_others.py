"""Load on ``skellipsoid-serve`` beside ``mlflow models serve`` and BentoML, all with the same exported model.

It needs ``wrk``, and a Python with the packages of ``environments/servers.txt``:

python3 -m venv others && others/bin/pip install -r environments/servers.txt "../skellipsoid-runtime[serve]"
python studies/serve_others.py --python others/bin/python --save results/serve_others.rst
"""

import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from serve_load import SCRIPT, load_in_turns, prepare, rows_of, tell, told

TICKS = os.sysconf("SC_CLK_TCK")
BENTO = """
import bentoml
from skellipsoid_runtime import OnnxPipeline

@bentoml.service(workers=1, traffic={"timeout": 60})
class Intents:
    def __init__(self):
        self.model = OnnxPipeline("first")

    @bentoml.api(batchable=True, max_batch_size=64, max_latency_ms=60000)
    def predict(self, texts: list[str]) -> list[str]:
        return self.model.predict(texts).tolist()
"""
MLFLOW = """
import mlflow

class Intents(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        from skellipsoid_runtime import OnnxPipeline
        self.model = OnnxPipeline("first")

    def predict(self, context, model_input: list[str], params=None) -> list[str]:
        return self.model.predict(list(model_input)).tolist()

mlflow.models.set_model(Intents())
"""
STORE = "import mlflow; mlflow.pyfunc.save_model('stored', python_model='flow_model.py', pip_requirements=[])"


def main():
    """Start the three, load each in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="Python with all three")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=int, default=10, help="of one turn")
    parser.add_argument("--turns", type=int, default=2, help="of each server and number of connections")
    parser.add_argument("--save", type=Path, help="write the table to this file")
    options = parser.parse_args()
    programs = options.python.absolute().parent
    with tempfile.TemporaryDirectory() as name:
        parent = Path(name)
        prepare(parent)
        (parent / "bento_service.py").write_text(BENTO)
        (parent / "flow_model.py").write_text(MLFLOW)
        subprocess.run([programs / "python", "-c", STORE], cwd=parent, check=True, capture_output=True)
        own = [programs / "skellipsoid-serve", "--model", "first"]
        flow = [programs / "mlflow", "models", "serve", "-m", "stored", "--env-manager", "local"]
        servers = [
            Other("skellipsoid-serve", parent, own, "predict", "texts"),
            Other("BentoML", parent, [programs / "bentoml", "serve", "bento_service:Intents"], "predict", "texts"),
            Other("mlflow models serve", parent, flow, "invocations", "inputs"),
        ]
        try:
            load_in_turns(servers, options)
            lines = rows_of(servers, options)
        finally:
            for server in servers:
                for process in reversed(server.tree()):
                    os.kill(process, 9)
                server.process.wait()
    lines += [
        "",
        f"One text a request, asked by wrk, {options.turns} turns of {options.seconds} s each, the servers in turns, "
        f"medians; {os.cpu_count()} cores with {os.getloadavg()[0]:.0f} running programs, client and servers among "
        "them. All three compute by skellipsoid-runtime; BentoML also shares batches, of 64 texts at most.",
    ]
    tell(lines, options)


class Other:
    """A server of some program, and what wrk said of it."""

    def __init__(self, name, parent, command, path, field):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        self.name, self.parent, self.turns, self.mib = name, parent, {}, 0.0
        self.address = f"http://127.0.0.1:{port}/{path}"
        texts = [json.loads(line)["text"] for line in (parent / "bodies").read_text(encoding="utf-8").splitlines()]
        self.bodies = [json.dumps({field: [text]}) for text in texts]
        (parent / name).write_text("\n".join(self.bodies), encoding="utf-8")
        (parent / "script.lua").write_text(SCRIPT)
        programs = str(command[0].parent)
        quiet = {"BENTOML_DO_NOT_TRACK": "True", "MLFLOW_DISABLE_TELEMETRY": "true", "TOKENIZERS_PARALLELISM": "false"}
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | quiet
        environment |= {"OMP_NUM_THREADS": "1", "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        with (parent / f"{name}.txt").open("wb") as file:
            words = [*map(str, command), "--port", str(port)]
            self.process = subprocess.Popen(words, cwd=parent, env=environment, stdout=file, stderr=file)

    def wait(self):
        """Wait until the server answers."""
        request = urllib.request.Request(
            self.address, self.bodies[0].encode(), {"content-type": "application/json"}, method="POST"
        )
        while True:
            if self.process.poll() is not None:
                raise RuntimeError((self.parent / f"{self.name}.txt").read_text())
            try:
                urllib.request.urlopen(request, timeout=60).close()
            except OSError:
                time.sleep(0.5)
            else:
                return

    def tree(self):
        """Give the processes of the server, each before those that it started."""
        found = [self.process.pid]
        for process in found:
            for task in Path(f"/proc/{process}/task").glob("*/children"):
                found += map(int, task.read_text().split())
        return found

    def used(self):
        """CPU seconds of all its processes until now, and their resident memory in MiB."""
        ticks = pages = 0
        for process in self.tree():
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return ticks / TICKS, pages * resource.getpagesize() / 2**20

    def load(self, n_connections, n_seconds):
        """Measure one turn."""
        before = self.used()[0]
        words = ["wrk", "-t1", f"-c{n_connections}", f"-d{n_seconds}s", "--timeout", "30s", "-s", "script.lua"]
        environment = os.environ | {"BODIES": self.name}
        found = told(
            subprocess.Popen(
                [*words, self.address], cwd=self.parent, env=environment, stdout=subprocess.PIPE, text=True
            )
        )
        after, mib = self.used()
        self.mib = max(self.mib, mib)
        found["cpu"] = 1000 * (after - before) / max(1, found["requests"])
        found["rate"] = found["requests"] / found["seconds"]
        self.turns.setdefault(n_connections, []).append(found)

    def row(self, n_connections):
        """Figures of the table."""
        turns = self.turns[n_connections]
        rate, middle, late, cpu = (
            statistics.median(turn[name] for turn in turns) for name in ("rate", "middle", "late", "cpu")
        )
        errors = sum(turn["errors"] for turn in turns)
        return [
            *(self.name, str(n_connections), f"{rate:.0f}", f"{middle:.0f}", f"{late:.0f}", f"{cpu:.1f}"),
            *(f"{self.mib:.0f}", str(errors)),
        ]


if __name__ == "__main__":
    main()
