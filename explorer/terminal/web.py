"""Bytes from an http(s) address: within one deadline and one size, from the server that was named and no other."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ...models.reading import read_text
from ...protocol.language.errors import DraincheckError

TOKEN_VARIABLE = "DRAINCHECK_TOKEN"
AUTHORIZATION = "Authorization"
MAX_SECRET_BYTES = 2**16
EXPECTED = "a token or a few headers"
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_NAME = re.compile(r"[0-9A-Za-z!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\x20-\x7e]*")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_PORTS = {"http": 80, "https": 443}


class SourceError(DraincheckError):
    """A source that cannot be read, or does not hold what was expected."""


@dataclass(frozen=True)
class Asking:
    """How a server is asked: seconds until the whole answer must be there, and what is sent along."""

    seconds: float
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def is_address(source: str) -> bool:
    """Whether a source is an http(s) address; the scheme may be written in capitals."""
    return bool(_ADDRESS.match(source))


def without_secrets(source: str) -> str:
    """An address as it may be shown: without user, password and query, which may hold a key."""
    if "://" not in source:
        return source
    kept = re.sub(r"://.*@", "://***@", source, count=1, flags=re.DOTALL)
    return re.sub(r"\?.+", "?...", kept, flags=re.DOTALL)


def headers_of(texts: Sequence[str], token_file: Path | None) -> dict[str, str]:
    """The headers of `NAME: VALUE` texts, of files of them (`@FILE`), and of a token.

    The token is a file's, or else that of the environment. Raises SourceError; its message holds no value.
    """
    lines: list[tuple[str, str]] = []
    for text in texts:
        if text.startswith("@"):
            path = Path(text[1:])
            content = read_text(path, MAX_SECRET_BYTES, EXPECTED)
            lines += [(line, f"{path}, line {at}") for at, line in enumerate(content.splitlines(), 1) if line]
        else:
            lines.append((text, "--header"))
    found: dict[str, str] = {}
    for line, where in lines:
        name, colon, value = (part.strip(" \t") for part in line.partition(":"))
        if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise SourceError(f"{where}: this is no header; expected NAME: VALUE in ASCII")
        _add(found, name, value, where)
    token, where = os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
    if token_file is not None:
        token, where = read_text(token_file, MAX_SECRET_BYTES, EXPECTED).strip(), str(token_file)
    if token or token_file is not None:
        if not _TOKEN.fullmatch(token):
            raise SourceError(f"{where}: this is no token; expected one word of ASCII")
        _add(found, AUTHORIZATION, f"Bearer {token}", where)
    return found


def _add(headers: dict[str, str], name: str, value: str, where: str) -> None:
    if name.title() in headers:
        raise SourceError(f"{where}: the header {name.title()} is given twice; leave one of the two away")
    headers[name.title()] = value


def fetch(address: str, asking: Asking, largest: int) -> bytes:
    """What the server at an address answers, at most one byte more than `largest`. Raises SourceError.

    All of it, from the look-up of the name to the last byte, must be over within the seconds asked for: the request is
    made in a thread that nobody waits for any longer than that.
    """
    shown = without_secrets(address)
    request = _request(address, shown, asking.headers)
    answers: SimpleQueue[bytes | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_answer(request, shown, asking.seconds + 1, largest))
        except Exception as error:
            answers.put(error)

    Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=asking.seconds)
    except Empty:
        raise SourceError(f"{shown}: no whole answer within {asking.seconds:g} s; see --timeout") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def _request(address: str, shown: str, headers: Mapping[str, str]) -> Request:
    """The request, with the credentials of the address as a header. Raises SourceError for a wrong address."""
    wrong = f"{shown}: this is no address; expected http://HOST:PORT/metrics (in a password, write / as %2F, @ as %40)"
    try:
        parts = urlsplit(address)
        sent = {"Accept": "text/plain", **headers}
        if parts.username is not None:
            _add(sent, AUTHORIZATION, _basic(parts), shown)
        if not _origin(address)[1]:
            raise SourceError(wrong)
        return Request(urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), headers=sent)
    except ValueError:
        raise SourceError(wrong) from None


def _basic(parts: SplitResult) -> str:
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def _origin(address: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port. Raises ValueError for a port that is none."""
    parts = urlsplit(address)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _answer(request: Request, shown: str, seconds_each: float, largest: int) -> bytes:
    """The body of the answer; each wait on the way there is limited by itself. Raises SourceError."""
    try:
        with build_opener(_SameServer).open(request, timeout=seconds_each) as stream:
            data: bytes = stream.read(largest + 1)
            left: int | None = getattr(stream, "length", None)  # what was announced and did not come
    except HTTPError as error:
        hint = "; see --token-file and --header" if error.code in (401, 403, 407) else ""
        raise SourceError(f"{shown}: the server answered {error.code} {error.reason}; expected metrics{hint}") from None
    except URLError as error:
        raise SourceError(f"{shown}: cannot be reached: {_plain(error.reason)}") from None
    except HTTPException as error:
        raise SourceError(f"{shown}: the answer broke off or is no HTTP: {_plain(error)}") from None
    except OSError as error:
        raise SourceError(f"{shown}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise SourceError(
            f"{shown}: no request can be made of this address; expected http://HOST:PORT/metrics"
        ) from None
    if left and len(data) <= largest:
        raise SourceError(f"{shown}: the answer broke off, {left:,} bytes before its end")
    return data


def _plain(reason: object) -> str:
    return str(getattr(reason, "strerror", None) or reason or type(reason).__name__)


class _SameServer(HTTPRedirectHandler):
    """Follows a redirection on the same server only: what was asked for, and what was sent along, is for it alone."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """The request for the new place. Raises SourceError if that is elsewhere."""
        try:
            same = _origin(newurl) == _origin(req.full_url)
        except ValueError:
            same = False
        if not same:
            raise SourceError(
                f"{without_secrets(req.full_url)}: the server sends to {without_secrets(newurl)}, on another host, "
                "port or scheme, which is not followed; give that address if it is meant"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)
