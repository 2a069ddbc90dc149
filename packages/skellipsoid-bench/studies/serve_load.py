"""Load on ``skellipsoid-serve``: exported and saved model, shared batches beside one text at a time, and model changes.

It needs ``wrk`` (``apt-get install wrk``).

python studies/serve_load.py --save results/serve_load.rst
"""

import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from sklearn.pipeline import Pipeline

from skellipsoid import EllipsoidOpenSetClassifier, SupConTextEncoder, datasets, export_onnx, save

ROOT = Path(__file__).parents[3]
#: Settings that answer each request by itself, one at a time.
ALONE = ["--max-batch", "1", "--n-threads", "1", "--wait-ms", "0"]
#: What wrk sends, one line of a file after the other, and what it says in the end.
SCRIPT = """
local bodies, i = {}, 0
for line in io.lines(os.getenv("BODIES")) do bodies[#bodies + 1] = line end
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
function request()
  i = i % #bodies + 1
  return wrk.format(nil, nil, nil, bodies[i])
end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('{"requests": %d, "seconds": %f, "middle": %f, "late": %f, "errors": %d}\\n', summary.requests,
    summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


def main():
    """Start the servers, load each in turns, change a model under load, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=int, default=10, help="of one turn")
    parser.add_argument("--turns", type=int, default=2, help="of each server and number of connections")
    parser.add_argument("--save", type=Path, help="write the table to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        parent = Path(name)
        equal, n_texts = prepare(parent)
        servers = [
            Server("runtime, one by one", parent / "current", ALONE, parent),
            Server("runtime", parent / "current", [], parent),
            Server("torch, one by one", parent / "saved", ALONE, parent),
            Server("torch", parent / "saved", [], parent),
        ]
        try:
            load_in_turns(servers, options)
            changed = change_models(servers[1], parent, max(options.connections))
            lines = rows_of(servers, options)
        finally:
            for server in servers:
                server.process.kill()
                server.process.wait()
    lines += ["", *said(options, servers), changed, f"{equal} of {n_texts} labels of the two models are equal."]
    tell(lines, options)


def load_in_turns(servers, options):
    """Wait for all servers, then load one after another, in each turn with all numbers of connections."""
    for server in servers:
        server.wait()
    for _ in range(options.turns):
        for n_connections in options.connections:
            for server in servers:
                server.load(n_connections, options.seconds)


def rows_of(servers, options):
    """Lines of the table: one for each server and number of connections."""
    heads = ["Server", "Connections", "Requests/s", "Median, ms", "99 % within, ms", "CPU each, ms", "MiB", "Errors"]
    return table(heads, [server.row(n) for server in servers for n in options.connections])


def tell(lines, options):
    """Print lines, and write them where asked."""
    print("\n".join(lines))
    if options.save:
        options.save.write_text("\n".join(lines) + "\n", encoding="utf-8")


def prepare(parent):
    """Save and export a model, and one with another line; write the requests. Gives how many labels are equal."""
    train = datasets.load_assistant_intents(subset="train")
    texts = datasets.load_assistant_intents(subset="test").data.tolist()
    encoder = SupConTextEncoder(finetune="head", random_state=0)
    pipe = Pipeline([("enc", encoder), ("clf", EllipsoidOpenSetClassifier(random_state=0))])
    pipe.fit(train.data, train.target)
    save(pipe, parent / "saved")
    export_onnx(pipe, parent / "first")
    labels = pipe.predict(texts).tolist()
    pipe[-1].offset_ = -0.1
    export_onnx(pipe, parent / "second")
    (parent / "current").write_text("first")
    (parent / "script.lua").write_text(SCRIPT)
    (parent / "bodies").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    from skellipsoid_runtime import OnnxPipeline

    found = OnnxPipeline(parent / "first").predict(texts).tolist()
    return sum(map(str.__eq__, labels, found)), len(texts)


class Server:
    """A process of ``skellipsoid-serve``, and what wrk said of it."""

    def __init__(self, name, model, words, parent):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.name, self.parent, self.turns, self.mib = name, parent, {}, 0.0
        paths = os.pathsep.join(map(str, (ROOT, ROOT / "packages" / "skellipsoid-runtime")))
        command = [sys.executable, "-m", "skellipsoid_runtime.serve", "--model", str(model), "--port", str(self.port)]
        environment = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        with (parent / f"{self.port}.txt").open("wb") as file:
            self.process = subprocess.Popen([*command, *words], env=environment, stderr=file)

    def wait(self):
        """Wait until the server answers."""
        while True:
            if self.process.poll() is not None:
                raise RuntimeError((self.parent / f"{self.port}.txt").read_text())
            try:
                self.get("ready")
            except OSError:
                time.sleep(0.1)
            else:
                return

    def get(self, path):
        """Ask once."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=60) as response:
            return response.read().decode()

    def counter(self, name):
        """Value of a counter."""
        return float(re.search(rf"^{re.escape(name)} (\S+)$", self.get("metrics"), re.M)[1])

    def asked(self, n_connections, n_seconds):
        """Let wrk ask over some connections for some seconds; an interrupt ends it earlier."""
        words = ["wrk", "-t1", f"-c{n_connections}", f"-d{n_seconds}s", "--timeout", "30s", "-s", "script.lua"]
        address, environment = f"http://127.0.0.1:{self.port}/predict", os.environ | {"BODIES": "bodies"}
        return subprocess.Popen([*words, address], cwd=self.parent, env=environment, stdout=subprocess.PIPE, text=True)

    def load(self, n_connections, n_seconds):
        """Measure one turn."""
        before = self.counter("process_cpu_seconds_total")
        found = told(self.asked(n_connections, n_seconds))
        found["cpu"] = 1000 * (self.counter("process_cpu_seconds_total") - before) / max(1, found["requests"])
        found["rate"] = found["requests"] / found["seconds"]
        self.turns.setdefault(n_connections, []).append(found)
        self.mib = max(self.mib, self.counter("process_resident_memory_bytes") / 2**20)

    def middle(self, n_connections, name):
        """Median of the turns."""
        return statistics.median(turn[name] for turn in self.turns[n_connections])

    def row(self, n_connections):
        """Figures of the table."""
        middle, late, cpu = (self.middle(n_connections, name) for name in ("middle", "late", "cpu"))
        errors = sum(turn["errors"] for turn in self.turns[n_connections])
        return [
            *(self.name, str(n_connections), f"{self.middle(n_connections, 'rate'):.0f}"),
            *(f"{middle:.0f}", f"{late:.0f}", f"{cpu:.1f}", f"{self.mib:.0f}", str(errors)),
        ]


def told(asking):
    """Read what wrk says in the end."""
    written, _ = asking.communicate()
    if asking.returncode:
        raise RuntimeError(written)
    return json.loads(written.splitlines()[-1])


def change_models(server, parent, n_connections):
    """Change the model ten times while wrk asks, each time when the last one was taken; says what was lost."""
    begin, asking = time.perf_counter(), server.asked(n_connections, 600)
    for number in range(1, 11):
        (parent / "next").write_text("second" if number % 2 else "first")
        (parent / "next").replace(parent / "current")
        while server.counter('skellipsoid_model_changes_total{result="taken"}') < number:
            time.sleep(0.1)
    seconds = time.perf_counter() - begin
    asking.send_signal(signal.SIGINT)
    found = told(asking)
    return (
        f"Ten changes of the model of the runtime under the load of {n_connections} connections took {seconds:.0f} s: "
        f"{found['requests']} requests were answered, {found['errors']} failed."
    )


def said(options, servers):
    """Say the ratios, which the load of other programs changes less than the figures."""
    most = max(options.connections)
    for alone, shared in (servers[:2], servers[2:]):
        ratio = shared.middle(most, "rate") / alone.middle(most, "rate")
        single = shared.middle(most, "rate") / alone.middle(min(options.connections), "rate")
        cpu = alone.middle(most, "cpu") / shared.middle(most, "cpu")
        late = shared.middle(most, "late") / shared.middle(most, "middle")
        yield (
            f"{shared.name}: at {most} connections, shared batches answered {ratio:.1f} times as many requests as one "
            f"by one, and {single:.1f} times as many as one by one at {min(options.connections)} connection. A request "
            f"took 1/{cpu:.1f} of the processor time, and 99 % came within {late:.1f} times the median."
        )
    yield (
        f"One text a request, asked by wrk, {options.turns} turns of {options.seconds} s each, the servers in turns, "
        f"medians; {os.cpu_count()} cores with {os.getloadavg()[0]:.0f} running programs, client and servers among "
        "them. Compare the rows, and no figure with another machine."
    )


def table(header, rows):
    """Lay out a table in reStructuredText."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = "  ".join("=" * width for width in widths)

    def line(cells):
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    return [rule, line(header), rule, *map(line, rows), rule]


if __name__ == "__main__":
    main()
