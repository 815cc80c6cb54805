"""JSON over HTTP to a model service the user names: bounded in time and size, no redirects, one typed error.

The service is not trusted: its answer is capped before it is parsed, a redirect is refused (it could send a prompt
elsewhere), and the deadline covers the whole answer, so that a service that drips bytes cannot hold an instrument.
"""

import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Literal

from engine.base.errors import ConfigError, CoreError

MAX_ANSWER_BYTES = 64 * 2**20


class ServiceError(CoreError, RuntimeError):
    """A model service gave no usable answer; `kind` says whether none came, it came too late, or it was malformed."""

    def __init__(self, kind: Literal["unavailable", "timeout", "malformed"], detail: str) -> None:
        super().__init__(detail)
        self.kind = kind

    def __reduce__(self) -> tuple[Any, ...]:
        return (ServiceError, (self.kind, *self.args))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuse every redirect: the answer then stands as the HTTP error it is."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def service_url(variable: str, default: str) -> str:
    """Return the base URL in the environment variable `variable`, or `default`. Raises `ConfigError` unless HTTP(S)."""
    url = os.environ.get(variable, default)
    if "://" not in url:
        url = f"http://{url}"
    wrong = f"{variable}={url!r} is not an http or https address"
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError(wrong) from None
    plain = not (parts.query or parts.fragment) and port != 0
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        raise ConfigError(wrong)
    return url.rstrip("/")


def bearer(variable: str) -> dict[str, str]:
    """Return the authorisation header with the key in `variable`, or no header."""
    key = os.environ.get(variable, "")
    if any(ord(c) < 33 or ord(c) > 126 for c in key):
        raise ConfigError(f"{variable} holds characters that no key has")
    return {"Authorization": f"Bearer {key}"} if key else {}


def post_json(url: str, payload: Mapping[str, Any], *, timeout: float, headers: Mapping[str, str] | None = None) -> Any:
    """POST `payload` and return the JSON answer. Raises `ServiceError`; `timeout` (seconds) bounds the whole call."""
    deadline = time.monotonic() + timeout
    body = json.dumps(payload, allow_nan=False).encode("ascii")
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json", **(headers or {})})
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=timeout) as answer:
            data = _read_all(answer, deadline, url)
    except urllib.error.HTTPError as error:
        with error:
            reason = error.read(300).decode("utf-8", "replace")
        raise ServiceError("unavailable", f"{url}: HTTP {error.code}: {reason.strip()}") from None
    except TimeoutError:
        raise ServiceError("timeout", f"{url}: no answer within {timeout:g} s") from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(getattr(error, "reason", None), TimeoutError):
            raise ServiceError("timeout", f"{url}: no answer within {timeout:g} s") from None
        raise ServiceError("unavailable", f"{url}: {getattr(error, 'reason', error)}") from None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ServiceError("malformed", f"{url}: the answer is not JSON ({type(error).__name__})") from None


def _read_all(answer: http.client.HTTPResponse, deadline: float, url: str) -> bytes:
    pieces = []
    size = 0
    while piece := answer.read1(65536):
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            raise ServiceError("malformed", f"{url}: the answer is larger than {MAX_ANSWER_BYTES} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
        pieces.append(piece)
    return b"".join(pieces)
