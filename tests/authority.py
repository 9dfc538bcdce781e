"""A timestamp authority of our own, made and run by ``openssl``: no test asks a real one."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

__all__ = ["Authority", "serving"]

_CONFIG = """
[req]
distinguished_name = name
prompt = no
[name]
CN = Test root
[root]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = CA:false
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[tsa]
serial = serial
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1, millisecs:500
ess_cert_id_alg = sha256
signer_digest = sha256
"""


class Authority:
    """An authority in a folder of its own: its root, and who signs for it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "tsa.cnf").write_text(_CONFIG)
        (folder / "serial").write_text("01\n")
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        config = ["-config", "tsa.cnf"]
        self.openssl(
            "req", "-x509", *key, "-keyout", "root.key", "-out", "root.pem", "-days", "3650",
            *config, "-extensions", "root",
        )  # fmt: skip
        self.openssl(
            "req", "-new", *key, "-keyout", "leaf.key", "-out", "leaf.csr", *config,
            "-subj", "/CN=Test authority",
        )  # fmt: skip
        self.openssl(
            "x509", "-req", "-in", "leaf.csr", "-CA", "root.pem", "-CAkey", "root.key",
            "-CAcreateserial", "-out", "leaf.pem", "-days", "3650",
            "-extfile", "tsa.cnf", "-extensions", "leaf",
        )  # fmt: skip

    def openssl(self, *arguments: str) -> str:
        """Run ``openssl`` in the folder (CalledProcessError: it refused)."""
        done = subprocess.run(
            ["openssl", *arguments], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout

    @property
    def roots(self) -> Path:
        """The PEM file that whoever trusts the authority has."""
        return self.folder / "root.pem"

    def reply(self, query: bytes, *more: str) -> bytes:
        """Stamp what a query asks."""
        (self.folder / "query.tsq").write_bytes(query)
        self.openssl(
            "ts", "-reply", "-config", "tsa.cnf", "-section", "tsa", "-queryfile", "query.tsq",
            "-signer", "leaf.pem", "-inkey", "leaf.key", "-out", "reply.tsr", *more,
        )  # fmt: skip
        return (self.folder / "reply.tsr").read_bytes()

    def query(self, data: bytes) -> bytes:
        """Write the query for a stamp over ``data``."""
        (self.folder / "data").write_bytes(data)
        self.openssl("ts", "-query", "-data", "data", "-sha256", "-cert", "-out", "query.tsq")
        return (self.folder / "query.tsq").read_bytes()


@contextmanager
def serving(
    answer: Callable[[bytes], tuple[int, str, bytes]],
) -> Iterator[str]:
    """Answer POSTs on a port of this machine; gives the URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            status, kind, body = answer(data)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/tsr"
        finally:
            server.shutdown()
            thread.join()
