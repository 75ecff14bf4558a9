"""What server-figures and cluster-figures share: servers that are measured, a small client, loads, and tables."""

import csv
import datetime
import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The longest wait for a server that starts or a node that catches up, in seconds.
PATIENCE = 3600


class Refused(Exception):
    """An error that a server replied with."""


class Client:
    """A connection that speaks RESP2, with many commands at a time."""

    def __init__(self, port, host="127.0.0.1", timeout=60):
        self.socket = socket.create_connection((host, port), timeout=timeout)
        self.input = self.socket.makefile("rb")

    def send(self, *commands):
        parts = []
        for command in commands:
            words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
            parts.append(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        self.socket.sendall(b"".join(parts))

    def receive(self):
        line = self.input.readline()
        if not line:
            raise ConnectionError("the connection ended")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            return Refused(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.input.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.receive() for _ in range(int(rest))]
        return rest.decode()

    def call(self, *command):
        self.send(command)
        reply = self.receive()
        if isinstance(reply, Refused):
            raise reply
        return reply

    def status(self):
        """RAFT.STATUS as a dictionary of texts and numbers."""
        reply = self.call("RAFT.STATUS")
        plain = [word.decode() if isinstance(word, bytes) else word for word in reply]
        return dict(zip(plain[::2], plain[1::2]))

    def close(self):
        self.socket.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process that serves; `prepare` runs in it before the program, as to join a control group."""

    def __init__(self, command, port, log, prepare=None):
        self.command, self.port, self.log, self.prepare = [str(word) for word in command], port, log, prepare
        self.process = None

    def start(self, wait=True):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=self.prepare)
        if wait:
            self.wait_until_ready()
        return self

    def wait_until_ready(self):
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            if self.process.poll() is not None:
                raise SystemExit(f"{' '.join(self.command)} has ended:\n{pathlib.Path(self.log).read_text()[-2000:]}")
            try:
                client = Client(self.port)
                client.call("PING")
                client.close()
                return
            except (OSError, Refused):
                time.sleep(0.02)
        raise SystemExit(f"{self.command[0]} does not serve")

    def is_up(self):
        return self.process is not None and self.process.poll() is None

    def memory(self):
        """Resident bytes now, and at most so far; nothing of a process that has ended."""
        with open(f"/proc/{self.process.pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status if ":" in line)
        return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")) if "VmRSS" in fields else None

    def kill(self):
        self.end(signal.SIGKILL)

    def end(self, how=signal.SIGTERM):
        if self.is_up():
            self.process.send_signal(how)
            self.process.wait()
        self.process = None


def esker_server(esker, directory, port, *arguments, prepare=None):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    command = [esker, "serve", "--db", directory / "data", "--listen", f"127.0.0.1:{port}", "--log", "warn", *arguments]
    return Server(command, port, directory / "log", prepare)


def redis_server(redis, directory, port, *arguments, prepare=None):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    command = [redis, "--port", port, "--dir", directory, "--appendonly", "yes", "--save", "", *arguments]
    return Server(command, port, directory / "log", prepare)


class Cluster:
    """Nodes of one cluster on this machine."""

    def __init__(self, esker, directory, *arguments):
        self.esker, self.directory, self.arguments, self.nodes = esker, pathlib.Path(directory), arguments, {}

    def add(self, number, *arguments):
        """Starts another node; its address as RAFT.ADD takes it."""
        port, raft = free_port(), free_port()
        address = f"127.0.0.1:{port}@{raft}"
        cluster = ["--cluster-node", number, "--cluster-listen", f"127.0.0.1:{raft}", "--advertise", address]
        node = esker_server(self.esker, self.directory / str(number), port, *cluster, *self.arguments, *arguments)
        self.nodes[number] = node.start()
        return address

    def start(self, count):
        members = [word for number in range(1, count + 1) for word in (number, self.add(number))]
        Client(self.nodes[1].port).call("RAFT.INIT", *members)
        self.leader()
        return self

    def statuses(self):
        found = {}
        for number, node in self.nodes.items():
            try:
                client = Client(node.port, timeout=2)
                found[number] = client.status()
                client.close()
            except (OSError, Refused):
                pass
        return found

    def leader(self):
        """The number of the leader, when there is one."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            for number, status in self.statuses().items():
                if status["role"] == "leader":
                    return number
            time.sleep(0.05)
        raise SystemExit("the cluster elects no leader")

    def wait_until_applied(self, numbers, index):
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            statuses = self.statuses()
            if all(number in statuses and statuses[number]["applied"] >= index for number in numbers):
                return
            time.sleep(0.02)
        raise SystemExit(f"nodes {numbers} do not apply entry {index}")

    def end(self):
        for node in self.nodes.values():
            node.kill()


def benchmark(port, test, requests, clients, pipeline, keys, value_bytes, tool="redis-benchmark"):
    """Runs redis-benchmark once; requests a second, and milliseconds at the median and at 99 percent."""
    command = [tool, "-h", "127.0.0.1", "-p", port, "-t", test, "-n", requests, "-c", clients, "-P", pipeline, "-r", keys, "-d", value_bytes, "--csv"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    rows = [row for row in csv.DictReader(done.stdout.splitlines()) if row.get("rps")]
    if done.returncode != 0 or len(rows) != 1:
        raise SystemExit(f"{' '.join(str(word) for word in command)}:\n{done.stdout}{done.stderr}")
    return {"rate": float(rows[0]["rps"]), "p50": float(rows[0]["p50_latency_ms"]), "p99": float(rows[0]["p99_latency_ms"])}


def load(port, keys, value_bytes, first=0, batch=256):
    """Sets keys as redis-benchmark names them; how many there are when a server refuses one, and why."""
    client = Client(port)
    # Half of it repeats itself, so that compression has what it has with real data.
    half = value_bytes // 2
    done = 0
    for begin in range(first, first + keys, batch):
        numbers = range(begin, min(begin + batch, first + keys))
        commands = [(b"SET", b"key:%012d" % number, os.urandom(half) + b"x" * (value_bytes - half)) for number in numbers]
        client.send(*commands)
        for _ in numbers:
            reply = client.receive()
            if isinstance(reply, Refused):
                return done, str(reply)
            done += 1
    client.close()
    return done, None


def table(header, rows, left=1):
    """Markdown; so many columns are texts."""
    lines = ["| " + " | ".join(header) + " |", "| " + " | ".join("---" if column < left else "---:" for column in range(len(header))) + " |"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def size(count):
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def circumstances(*programs):
    """Where and with what the figures were made."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    lines = [f"* {datetime.date.today().isoformat()}, commit {commit}", f"* {os.cpu_count()} cores, {size(memory)} of memory, {platform.system()} {platform.release()} {platform.machine()}"]
    for program in programs:
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip().splitlines()
        lines.append(f"* {version[0] if version else program}")
    return "\n".join(lines)


def emptied(path):
    """That directory, with nothing in it."""
    path = pathlib.Path(path)
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def quantile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]
