"""Embedders and generators over HTTP, against a real server on loopback that behaves well, badly, or not at all."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from engine.base.errors import ConfigError
from engine.instruments import service
from engine.instruments.embed.ollama import OllamaEmbedder
from engine.instruments.embed.openai import OpenAIEmbedder
from engine.instruments.synthesize.base import GenerationRequest
from engine.instruments.synthesize.ollama import OllamaGenerator
from engine.instruments.synthesize.openai import OpenAIGenerator

Answer = Callable[[dict[str, Any], BaseHTTPRequestHandler], None]


class Server:
    """A server whose next answers are set by the test; it keeps the requests it got."""

    def __init__(self) -> None:
        outer = self
        self.requests: list[tuple[str, dict[str, Any], dict[str, str]]] = []
        self.answer: Answer = say({})

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, body, dict(self.headers)))
                outer.answer(body, self)

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


def say(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()

    def answer(_: dict[str, Any], handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, text in (headers or {}).items():
            handler.send_header(name, text)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    running = Server()
    thread = threading.Thread(target=running.server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("OLLAMA_HOST", running.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{running.url}/v1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield running
    running.server.shutdown()
    running.server.server_close()
    thread.join()


def request(prompt: str = "the patterns") -> GenerationRequest:
    return GenerationRequest(prompt, "the rules", (), np.zeros((0, 2)), key=7)


def ollama_rows(body: dict[str, Any], handler: BaseHTTPRequestHandler) -> None:
    say({"embeddings": [[float(len(text)), 1.0] for text in body["input"]]})(body, handler)


def openai_rows(body: dict[str, Any], handler: BaseHTTPRequestHandler) -> None:
    rows = [{"index": at, "embedding": [float(len(text)), 1.0]} for at, text in enumerate(body["input"])]
    say({"data": rows[::-1]})(body, handler)


@pytest.mark.parametrize(
    ("embedder", "answer"),
    [(OllamaEmbedder("m"), ollama_rows), (OpenAIEmbedder("m"), openai_rows)],
    ids=["ollama", "openai"],
)
def test_rows_come_back_in_the_order_of_the_texts(server: Server, embedder: Any, answer: Answer) -> None:
    server.answer = answer
    texts = ["x" * (at + 1) for at in range(40)]
    result = embedder.embed(texts)
    assert result.reason == "ok"
    assert [row[0] for row in result.vectors] == [float(at + 1) for at in range(40)]
    assert sum(len(body["input"]) for _, body, _ in server.requests) == 40


def test_ollama_is_asked_not_to_cut(server: Server) -> None:
    server.answer = ollama_rows
    OllamaEmbedder().embed(["a"])
    path, body, _ = server.requests[0]
    assert path == "/api/embed"
    assert body["truncate"] is False


OLLAMA_BAD: dict[str, tuple[Answer, str]] = {
    "too few rows": (say({"embeddings": [[1.0]]}), "embed_malformed"),
    "rows of two lengths": (say({"embeddings": [[1.0], [1.0, 2.0]]}), "embed_malformed"),
    "an empty row": (say({"embeddings": [[], []]}), "embed_malformed"),
    "text in a row": (say({"embeddings": [["1"], [2.0]]}), "embed_malformed"),
    "booleans in a row": (say({"embeddings": [[True], [2.0]]}), "embed_malformed"),
    "a huge integer": (say(b'{"embeddings": [[1' + b"0" * 400 + b"], [2]]}"), "embed_malformed"),
    "no rows": (say({}), "embed_malformed"),
    "a list": (say([1, 2]), "embed_malformed"),
    "not JSON": (say(b"<html>"), "embed_malformed"),
    "nested without end": (say(b"[" * 200_000), "embed_malformed"),
    "an error": (say({"error": "model not found"}, 404), "embed_unavailable"),
    "a server error": (say(b"", 500), "embed_unavailable"),
    "a redirect": (say(b"", 302, {"Location": "http://127.0.0.1:9/"}), "embed_unavailable"),
    "a redirect that keeps the method": (say(b"", 307, {"Location": "/elsewhere"}), "embed_unavailable"),
}


@pytest.mark.parametrize("name", OLLAMA_BAD)
def test_a_bad_answer_is_a_reason_and_never_a_number(server: Server, name: str) -> None:
    server.answer, reason = OLLAMA_BAD[name]
    result = OllamaEmbedder().embed(["a", "b"])
    assert (result.vectors, result.reason) == (None, reason)
    assert result.detail
    assert len(server.requests) == 1


OPENAI_BAD = {
    "an index twice": {"data": [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}]},
    "an index too far": {"data": [{"index": 0, "embedding": [1.0]}, {"index": 5, "embedding": [2.0]}]},
    "an index that is a list": {"data": [{"index": "0", "embedding": [1.0]}, {"index": 1, "embedding": [2.0]}]},
    "items that are no objects": {"data": [1, 2]},
    "no embedding": {"data": [{"index": 0}, {"index": 1}]},
}


@pytest.mark.parametrize("name", OPENAI_BAD)
def test_a_bad_openai_answer_is_malformed(server: Server, name: str) -> None:
    server.answer = say(OPENAI_BAD[name])
    result = OpenAIEmbedder().embed(["a", "b"])
    assert (result.vectors, result.reason) == (None, "embed_malformed")


def test_nobody_listening_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:1")
    assert OllamaEmbedder().embed(["a"]).reason == "embed_unavailable"
    assert OllamaGenerator().generate(request()).done_reason == "unavailable"


def drip(_: dict[str, Any], handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        try:
            handler.wfile.write(b" ")
            handler.wfile.flush()
        except OSError:
            return
        time.sleep(0.05)


def test_a_service_that_drips_is_cut_off_at_the_deadline(server: Server) -> None:
    server.answer = drip
    started = time.monotonic()
    result = OllamaEmbedder(timeout=0.3).embed(["a"])
    assert result.reason == "embed_unavailable"
    assert "no answer within" in result.detail
    assert time.monotonic() - started < 4.0


def test_an_answer_beyond_the_cap_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MAX_ANSWER_BYTES", 1000)
    server.answer = say(b" " * 200_000)
    assert OllamaEmbedder().embed(["a"]).reason == "embed_malformed"


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://127.0.0.1", "http://", "http://h/?q=1"])
def test_an_address_that_is_not_http_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("OLLAMA_HOST", url)
    with pytest.raises(ConfigError, match="OLLAMA_HOST"):
        service.service_url("OLLAMA_HOST", "http://127.0.0.1")
    assert OllamaEmbedder().embed(["a"]).reason == "embed_unavailable"
    assert OllamaGenerator().generate(request()).done_reason == "unavailable"


def test_the_key_goes_into_the_header_only(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-real-key")
    server.answer = openai_rows
    embedder = OpenAIEmbedder()
    result = embedder.embed(["a"])
    _, body, headers = server.requests[0]
    assert headers["Authorization"] == "Bearer not-a-real-key"
    assert "not-a-real-key" not in json.dumps([body, dict(embedder.parameters), embedder.id, result.detail])
    monkeypatch.setenv("OPENAI_API_KEY", "key\r\nHost: elsewhere")
    assert embedder.embed(["a"]).reason == "embed_unavailable"


def test_ollama_generates_with_thinking_on(server: Server) -> None:
    server.answer = say({"message": {"content": "# A", "thinking": "hm"}, "done": True, "done_reason": "stop"})
    generated = OllamaGenerator("qwen3").generate(request())
    assert (generated.text, generated.thinking, generated.done_reason) == ("# A", "hm", "stop")
    path, body, _ = server.requests[0]
    assert path == "/api/chat"
    assert body["think"] is True
    assert body["options"]["seed"] == 7
    assert [message["content"] for message in body["messages"]] == ["the rules", "the patterns"]


def test_a_model_without_thinking_is_asked_again_and_that_is_recorded(server: Server) -> None:
    def answer(body: dict[str, Any], handler: BaseHTTPRequestHandler) -> None:
        if body["think"]:
            say({"error": '"m" does not support thinking'}, 400)(body, handler)
        else:
            say({"message": {"content": "# A"}, "done": True, "done_reason": "stop"})(body, handler)

    server.answer = answer
    generated = OllamaGenerator("m").generate(request())
    assert generated.complete
    assert generated.measured == {"think": False}


GENERATOR_BAD: dict[str, tuple[Any, str]] = {
    "cut off": ({"message": {"content": "# A"}, "done": True, "done_reason": "length"}, "length"),
    "not done": ({"message": {"content": "# A"}, "done": False}, "malformed"),
    "no message": ({"done": True, "done_reason": "stop"}, "malformed"),
    "a message that is a list": ({"message": [], "done": True, "done_reason": "stop"}, "malformed"),
    "content that is a number": ({"message": {"content": 3}, "done": True, "done_reason": "stop"}, "malformed"),
    "a list": ([], "malformed"),
}


@pytest.mark.parametrize("name", GENERATOR_BAD)
def test_a_bad_generation_has_no_text(server: Server, name: str) -> None:
    value, reason = GENERATOR_BAD[name]
    server.answer = say(value)
    generated = OllamaGenerator().generate(request())
    assert (generated.text, generated.done_reason, generated.complete) == ("", reason, False)


def test_openai_generates(server: Server) -> None:
    message = {"content": "# A", "reasoning_content": "hm"}
    server.answer = say({"choices": [{"message": message, "finish_reason": "stop"}]})
    generated = OpenAIGenerator("m").generate(request())
    assert (generated.text, generated.thinking, generated.done_reason) == ("# A", "hm", "stop")
    path, body, _ = server.requests[0]
    assert path == "/v1/chat/completions"
    assert body["seed"] == 7


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"choices": [{"message": {"content": "# A"}, "finish_reason": "length"}]}, "length"),
        ({"choices": []}, "malformed"),
        ({"choices": [3]}, "malformed"),
        ({"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}, "malformed"),
        (3, "malformed"),
    ],
)
def test_a_bad_openai_generation_has_no_text(server: Server, value: Any, reason: str) -> None:
    server.answer = say(value)
    generated = OpenAIGenerator().generate(request())
    assert (generated.text, generated.done_reason) == ("", reason)
