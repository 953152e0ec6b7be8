"""Metrics from an address: one deadline, one server, credentials that are used and never shown, bounded size."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from draincheck.explorer.commands.cli import main
from draincheck.explorer.operators import sources
from draincheck.explorer.terminal import web

TEXT = b'sglang:decode_deferred_kv_release_total{outcome="drained"} 9\n'


class _Server(BaseHTTPRequestHandler):
    """Metrics, with and without the right to them, and everything that a server should not do."""

    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        self.seen.append(dict(self.headers))
        if path == "/drip":
            self._drip()
        elif path.startswith("/to/"):
            self._send(302, b"", Location={"/to/self": "/metrics", "/to/circle": "/to/circle"}.get(path, self.query))
        elif path == "/phrase":
            self._send(503, b"", "\x1b[31mred")
        elif path == "/denied":
            self._send(401, b"")
        elif path == "/large":
            self._send(200, b"a 1\n" * 1000)
        elif path == "/labels":
            self._send(200, TEXT.replace(b'outcome="drained"', b'outcome="drained",a="\x1b[2J\\nHEALTHY",tp_rank="0"'))
        else:
            self._send(200, TEXT)

    @property
    def query(self) -> str:
        return self.path.partition("?")[2]

    def _send(self, code: int, body: bytes, phrase: str | None = None, **headers: str) -> None:
        self.send_response(code, phrase)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self) -> None:
        """A header that never ends, a byte at a time: no single wait is long."""
        self.send_response(200)
        try:
            while not self.server.over.is_set():  # type: ignore[attr-defined]
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.02)
        except OSError:
            pass

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    _Server.seen = []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Server) as serving:
        serving.daemon_threads = True
        serving.over = threading.Event()  # type: ignore[attr-defined]
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.over.set()  # type: ignore[attr-defined]
        serving.shutdown()


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["metrics", *map(str, arguments)])


def refused(*arguments: object) -> str:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1), result.output
    return result.stderr


def healthy(*arguments: object) -> dict[str, str]:
    """The headers that the server saw."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return _Server.seen[-1]


def test_the_deadline_is_for_the_whole_answer(server: str) -> None:
    assert "no whole answer within 0.3 s" in refused(f"{server}/drip", "--timeout", "0.3")


def test_the_scheme_may_be_in_capitals(server: str) -> None:
    healthy(server.replace("http", "HTTP") + "/metrics")


def test_redirections_stay_on_the_server(server: str) -> None:
    healthy(f"{server}/to/self")
    other = server.replace("127.0.0.1", "localhost")
    for target in (f"{other}/metrics", "https" + server[4:], "http://u:secret@127.0.0.2:1/x?key=secret", "//x:y/"):
        message = refused(f"{server}/to/other?{target}")
        assert "which is not followed" in message and "secret" not in message
    assert "/etc/passwd" in refused(f"{server}/to/file?file:///etc/passwd")
    assert "302" in refused(f"{server}/to/circle")


def test_credentials_of_the_address_are_used_and_not_shown(server: str) -> None:
    address = server.replace("//", "//us%40er:se%2Fcret@")
    wanted = base64.b64encode(b"us@er:se/cret").decode()
    assert healthy(f"{address}/metrics")["Authorization"] == f"Basic {wanted}"
    document = json.loads(run(f"{address}/metrics?key=topsecret", "--json").stdout)
    assert document["sources"] == [f"{server.replace('//', '//***@')}/metrics?..."]
    for place in ("drip", "denied", "gone", "to/other?http://127.0.0.9/"):
        said = run(f"{address}/{place}", "--timeout", "0.3").output
        assert "cret" not in said


@pytest.mark.parametrize(
    "address", ["http://user:secret/more@host:99999/x", "http://user:secret@[bad/", "http://user:sec ret@127.0.0.1:1/"]
)
def test_credentials_of_a_wrong_address_are_not_shown(address: str) -> None:
    assert "sec" not in refused(address)
    assert "sec" not in run(address, address, address).output


def test_a_token_and_headers_come_from_files_and_the_environment(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, headers = tmp_path / "token", tmp_path / "headers"
    token.write_text("\ufefft0ken\n", "utf-8")
    headers.write_text("X-Scope: a b\n\nX-Other: c\n", "utf-8")
    url = f"{server}/metrics"
    assert healthy(url, "--token-file", token)["Authorization"] == "Bearer t0ken"
    seen = healthy(url, "--header", f"@{headers}", "--header", "X-Third:d")
    assert (seen["X-Scope"], seen["X-Other"], seen["X-Third"]) == ("a b", "c", "d")
    monkeypatch.setenv("DRAINCHECK_TOKEN", "from-the-environment")
    assert healthy(url)["Authorization"] == "Bearer from-the-environment"
    assert healthy(url, "--token-file", token)["Authorization"] == "Bearer t0ken"
    assert "Authorization is given twice" in refused(url, "--header", "authorization: Bearer x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no colon but s3cret", "this is no header"),
        ("X: s3cret\r\nY: z", "this is no header"),
        ("X y: s3cret", "this is no header"),
        ("X: s3cr\u00e9t", "this is no header"),
        ("@/dev/zero", "is no regular file"),
        ("@/nowhere", "No such file"),
    ],
)
def test_wrong_headers_are_refused_without_showing_them(server: str, text: str, said: str) -> None:
    message = refused(f"{server}/metrics", "--header", text)
    assert said in message and "s3cr" not in message


def test_wrong_tokens_are_refused_without_showing_them(server: str, tmp_path: Path) -> None:
    for content in (b"", b"two w0rds", b"\xff\xfe", b"w0rd" * 20_000):
        (tmp_path / "token").write_bytes(content)
        assert "w0rd" not in refused(f"{server}/metrics", "--token-file", tmp_path / "token")


def test_headers_belong_to_addresses() -> None:
    result = run("file", "--header", "a: b")
    assert result.exit_code == 2 and "no source is one" in result.stderr


def test_the_answer_has_a_largest_size(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_BYTES", 3999)
    assert "larger than 3,999 bytes" in refused(f"{server}/large")
    assert len(web.fetch(f"{server}/large", web.Asking(10), 100)) == 101


def test_a_hint_where_the_right_is_missing(server: str) -> None:
    assert "answered 401 Unauthorized; expected metrics; see --token-file and --header" in refused(f"{server}/denied")


def test_nothing_that_a_server_says_is_obeyed_by_the_terminal(server: str) -> None:
    assert "\\u001b[31mred" in refused(f"{server}/phrase")
    result = run(f"{server}/labels")
    assert "\x1b" not in result.output and "\\u001b[2J\\nHEALTHY" in result.output
    assert not any(line.startswith("HEALTHY") for line in result.stdout.splitlines()[:-2])
