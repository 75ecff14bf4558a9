"""S3 servers for tests, installed into target/, and a proxy that delays, refuses and loses requests on their way."""

import http.client
import http.server
import os
import pathlib
import subprocess
import sys
import threading
import time

import serving

# Stores objects as files, checks signatures, and has puts on the condition that there be no object.
GATEWAY = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
# Stores them in memory.
MOTO = ["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"]
SERVERS = ("gateway", "moto")
BUCKET = "backups"
KEY, SECRET, REGION = "tester", "a secret of the tests", "us-east-1"
# The longest that is waited for a condition, in seconds. It decides nothing: a test that has waited that long has failed.
PATIENCE = 300


class Missing(Exception):
    """Why there is no server."""


def wait_for(what, condition):
    """Waits until the condition yields something, and returns that."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"not in {PATIENCE} s: {what}")


def install(server, directory):
    """The command of a server, which is installed into the directory if it is not there."""
    directory = pathlib.Path(directory).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    if server == "gateway":
        place = directory / GATEWAY.rpartition("/")[2]
        run = [["go", "install", GATEWAY]]
        found = place / "versitygw"
        environment = os.environ | {"GOBIN": str(place), "GOFLAGS": "-trimpath", "CGO_ENABLED": "0"}
    else:
        place = directory / f"moto-{MOTO[0].rpartition('=')[2]}"
        run = [[sys.executable, "-m", "venv", place], [place / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", *MOTO]]
        found = place / "bin/moto_server"
        environment = os.environ
    if not found.exists():
        for command in run:
            try:
                done = subprocess.run(command, capture_output=True, text=True, env=environment)
            except FileNotFoundError:
                raise Missing(f"{command[0]} is missing") from None
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
                raise Missing(f"{' '.join(str(word) for word in command[:4])} fails: {last}")
    return found


class S3Server:
    """A server of one bucket, on this machine. `objects` is where it has the objects as files, if it does."""

    def __init__(self, server, program, directory):
        self.directory, self.port = pathlib.Path(directory), serving.free_port()
        self.directory.mkdir(parents=True)
        self.objects = self.directory / "store" / BUCKET if server == "gateway" else None
        address = f"127.0.0.1:{self.port}"
        environment = os.environ | {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET, "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(64 << 20)}
        if server == "gateway":
            self.objects.mkdir(parents=True)
            (self.directory / "attributes").mkdir()
            command = [program, "--port", address, "--region", REGION, "--quiet", "posix", "--sidecar", self.directory / "attributes", self.objects.parent]
        else:
            command = [program, "--host", "127.0.0.1", "--port", self.port]
        with open(self.directory / "log", "wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        wait_for("the S3 server listens", self.is_listening)
        if self.objects is None:
            # It takes any signature of this form.
            signed = {"Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/{REGION}/s3/aws4_request, SignedHeaders=host, Signature=0"}
            connection = http.client.HTTPConnection("127.0.0.1", self.port)
            connection.request("PUT", f"/{BUCKET}", headers=signed)
            assert connection.getresponse().status == 200

    def is_listening(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the S3 server has ended: {(self.directory / 'log').read_text()[-2000:]}")
        try:
            http.client.HTTPConnection("127.0.0.1", self.port).connect()
            return True
        except OSError:
            return False

    def end(self):
        self.process.terminate()
        self.process.wait()


def environment_of(port, **others):
    """What `esker backup` takes from its environment to reach the server at this port; None removes a variable."""
    environment = {name: value for name, value in os.environ.items() if not name.upper().startswith(("AWS_", "AZURE_", "GOOGLE_"))}
    environment |= {"AWS_ENDPOINT": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": REGION}
    environment |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET} | others
    return {name: value for name, value in environment.items() if value is not None}


class Request:
    """A request as it has come: `name` is that of the object, or empty for a listing."""

    def __init__(self, handler):
        length = int(handler.headers.get("Content-Length") or 0)
        self.body = handler.rfile.read(length)
        self.method, self.path = handler.command, handler.path
        self.headers = {name: value for name, value in handler.headers.items() if name.lower() != "connection"}
        self.name = self.path.partition("?")[0].removeprefix(f"/{BUCKET}").lstrip("/")
        self.is_conditional = "if-none-match" in {name.lower() for name in self.headers}


class Proxy:
    """Passes requests on, but for what `decide` says of each: it is called for one at a time, and returns None, or one of

    * "refuse": 503 SlowDown, which a store says to those that ask too often;
    * "unknown": 501 NotImplemented, which some stores say to headers that they do not know;
    * "hold": nothing is done before the proxy ends, and then the connection is closed;
    * "hold answer": the request is passed on, and its answer kept back;
    * "lose answer": the request is passed on, and the connection closed in place of an answer;
    * "cut": the answer is passed on up to its middle, and the connection closed;
    * "pretend": 200 without an object, as of a store that has overwritten one.

    `requests` has all that have come, `held` those that wait.
    """

    def __init__(self, port):
        self.decide = lambda request: None
        self.requests, self.held = [], []
        self.lock, self.ended = threading.Lock(), threading.Event()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                proxy.serve(self, port)

            do_PUT = do_POST = do_DELETE = do_HEAD = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        # A client that was killed has closed its connection.
        self.server.handle_error = lambda *_: None
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, handler, port):
        request = Request(handler)
        with self.lock:
            self.requests.append(request)
            decision = self.decide(request)
        if decision == "refuse":
            return respond(handler, 503, {}, b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
        if decision == "unknown":
            return respond(handler, 501, {}, b"<Error><Code>NotImplemented</Code><Message>A header implies what is not implemented.</Message></Error>")
        if decision == "pretend":
            return respond(handler, 200, {"ETag": '"0"'}, b"")
        if decision == "hold":
            return self.hold(handler, request)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request(request.method, request.path, request.body, request.headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if decision == "hold answer":
            return self.hold(handler, request)
        if decision == "lose answer":
            handler.close_connection = True
            return None
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server")}
        length = len(body) if request.method != "HEAD" else answer.getheader("Content-Length", 0)
        return respond(handler, answer.status, headers, body, length, cut=decision == "cut")

    def hold(self, handler, request):
        with self.lock:
            self.held.append(request)
        self.ended.wait()
        handler.close_connection = True

    def end(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


def respond(handler, status, headers, body, length=None, cut=False):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body[: len(body) // 2] if cut else body)
    handler.close_connection = cut
