"""A BERT encoder in Equinox, float32, loaded from a local sentence-transformers folder. Inference only.

Architecture: Devlin et al. (2019), "BERT: Pre-training of Deep Bidirectional Transformers"; mean pooling over tokens:
Reimers and Gurevych (2019), "Sentence-BERT". Products are computed at the highest precision, so that a device does not
lower them to TF32.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from engine.base.errors import ConfigError

Hidden: TypeAlias = Float32[Array, "batch tokens hidden"]
_LIMITS = {
    "hidden_size": 4096,
    "num_hidden_layers": 48,
    "num_attention_heads": 64,
    "intermediate_size": 16384,
    "vocab_size": 1_000_000,
    "max_position_embeddings": 8192,
}


class Dense(eqx.Module):
    """An affine map of the last axis; `weight` is (in, out), the transpose of the stored tensor.

    One matrix product over all tokens is a third faster on CPU than a batched one with the stored orientation.
    """

    weight: Float32[Array, "into out"]
    bias: Float32[Array, " out"]

    def __call__(self, x: Float32[Array, "batch tokens into"]) -> Float32[Array, "batch tokens out"]:
        batch, tokens, into = x.shape
        product = jnp.matmul(x.reshape(batch * tokens, into), self.weight, precision=jax.lax.Precision.HIGHEST)
        return (product + self.bias[None, :]).reshape(batch, tokens, -1)


class LayerNorm(eqx.Module):
    """Normalisation of the last axis to mean 0 and variance 1, then scale and shift."""

    weight: Float32[Array, " hidden"]
    bias: Float32[Array, " hidden"]
    epsilon: float = eqx.field(static=True)

    def __call__(self, x: Hidden) -> Hidden:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
        scaled = centred * jax.lax.rsqrt(variance + jnp.float32(self.epsilon))
        return scaled * self.weight[None, None, :] + self.bias[None, None, :]


class Layer(eqx.Module):
    """Self-attention and feed-forward block, each with a residual connection and a layer norm after it."""

    projections: Dense
    """Query, key and value, side by side."""
    attended: Dense
    attended_norm: LayerNorm
    inner: Dense
    outer: Dense
    outer_norm: LayerNorm
    heads: int = eqx.field(static=True)

    def __call__(self, x: Hidden, mask: Bool[Array, "batch tokens"]) -> Hidden:
        x = self.attended_norm(x + self.attended(self._attention(x, mask)))
        return self.outer_norm(x + self.outer(jax.nn.gelu(self.inner(x), approximate=False)))

    def _attention(self, x: Hidden, mask: Bool[Array, "batch tokens"]) -> Hidden:
        """Scaled dot-product attention over the tokens of `mask`.

        Heads lead and the keys come transposed, as the batched products on CPU want them: a third to three quarters
        of the time of contracting the axes where the projection leaves them.
        """
        batch, tokens, hidden = x.shape
        size = hidden // self.heads
        projected = self.projections(x).reshape(batch, tokens, 3, self.heads, size)
        query = jnp.transpose(projected[:, :, 0], (0, 2, 1, 3)) * jnp.float32(size**-0.5)
        key = jnp.transpose(projected[:, :, 1], (0, 2, 3, 1))
        value = jnp.transpose(projected[:, :, 2], (0, 2, 1, 3))
        scores = jnp.matmul(query, key, precision=jax.lax.Precision.HIGHEST)
        scores = jnp.where(mask[:, None, None, :], scores, jnp.float32(-jnp.inf))
        weights = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
        mixed = jnp.matmul(weights, value, precision=jax.lax.Precision.HIGHEST)
        mixed = mixed / jnp.sum(weights, axis=-1, keepdims=True)
        return jnp.transpose(mixed, (0, 2, 1, 3)).reshape(batch, tokens, hidden)


class Bert(eqx.Module):
    """Token ids to mean-pooled sentence vectors, not normalised."""

    words: Float32[Array, "vocabulary hidden"]
    positions: Float32[Array, "window hidden"]
    token_type: Float32[Array, " hidden"]
    norm: LayerNorm
    layers: tuple[Layer, ...]

    def enter(self, ids: Int32[Array, "batch tokens"]) -> Hidden:
        """Return what the first layer reads: word, position and type embeddings, normalised."""
        x = self.words[ids] + self.positions[None, : ids.shape[1]] + self.token_type[None, None, :]
        return self.norm(x)


def pool(x: Hidden, mask: Bool[Array, "batch tokens"]) -> Float32[Array, "batch hidden"]:
    """Return the mean over the tokens of `mask`. Every row needs at least one such token."""
    kept = mask.astype(jnp.float32)
    total = jnp.einsum("bth,bt->bh", x, kept, precision=jax.lax.Precision.HIGHEST)
    return total / jnp.sum(kept, axis=1, keepdims=True)


_enter = eqx.filter_jit(lambda model, ids: model.enter(ids))
_layer = eqx.filter_jit(lambda layer, x, mask: layer(x, mask))
_pool = eqx.filter_jit(pool)


def encode(
    model: Bert, ids: Int32[Array, "batch tokens"], mask: Bool[Array, "batch tokens"]
) -> Float32[Array, "batch hidden"]:
    """Return the mean-pooled output of the last layer.

    It compiles once per shape of `ids`: one layer, called as often as there are layers, which costs a sixth of the
    compile time of the whole pass for six of them and runs as fast.
    """
    x = _enter(model, ids)
    for layer in model.layers:
        x = _layer(layer, x, mask)
    return _pool(x, mask)


def read_config(folder: Path) -> dict[str, Any]:
    """Return the model's configuration, its sizes bounded. Raises `ConfigError` for what this encoder is not."""
    config = read_json(folder / "config.json")
    if config.get("model_type") != "bert" or config.get("position_embedding_type", "absolute") != "absolute":
        raise ConfigError(f"{folder}: model type {config.get('model_type')!r}; only BERT encoders are supported")
    if config.get("hidden_act") != "gelu":
        raise ConfigError(f"{folder}: activation {config.get('hidden_act')!r}; only gelu is supported")
    for name, limit in _LIMITS.items():
        value = config.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= limit:
            raise ConfigError(f"{folder}: {name} is {value!r}; expected a whole number from 1 to {limit}")
    if config["hidden_size"] % config["num_attention_heads"]:
        raise ConfigError(f"{folder}: hidden_size is not a multiple of num_attention_heads")
    return config


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a model folder's file. Raises `ConfigError` where it cannot be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not readable as JSON ({type(error).__name__})") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected a JSON object")
    return value


def build(config: Mapping[str, Any], tensors: Mapping[str, Any]) -> Bert:
    """Return the encoder with the given tensors. Raises `ConfigError` for a missing tensor or one of wrong shape."""
    epsilon = float(config.get("layer_norm_eps", 1e-12))
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    prefix = "bert." if "bert.embeddings.word_embeddings.weight" in tensors else ""

    def tensor(name: str, *shape: int) -> Array:
        value = tensors.get(prefix + name)
        if value is None or value.shape != shape or str(value.dtype) not in ("float32", "float16"):
            found = "absent" if value is None else f"{value.dtype}{list(value.shape)}"
            raise ConfigError(f"tensor {name}: expected float32{list(shape)}, found {found}")
        return jnp.asarray(value.astype("float32"))

    def dense(name: str, out: int, into: int) -> Dense:
        return Dense(tensor(f"{name}.weight", out, into).T, tensor(f"{name}.bias", out))

    def projections(at: str) -> Dense:
        parts = [dense(f"{at}.{name}", hidden, hidden) for name in ("query", "key", "value")]
        return Dense(
            jnp.concatenate([part.weight for part in parts], axis=1), jnp.concatenate([part.bias for part in parts])
        )

    def norm(name: str) -> LayerNorm:
        return LayerNorm(tensor(f"{name}.weight", hidden), tensor(f"{name}.bias", hidden), epsilon)

    def layer(at: str) -> Layer:
        attention = f"{at}.attention"
        return Layer(
            projections=projections(f"{attention}.self"),
            attended=dense(f"{attention}.output.dense", hidden, hidden),
            attended_norm=norm(f"{attention}.output.LayerNorm"),
            inner=dense(f"{at}.intermediate.dense", inner, hidden),
            outer=dense(f"{at}.output.dense", hidden, inner),
            outer_norm=norm(f"{at}.output.LayerNorm"),
            heads=config["num_attention_heads"],
        )

    types = tensor("embeddings.token_type_embeddings.weight", config.get("type_vocab_size", 2), hidden)
    return Bert(
        words=tensor("embeddings.word_embeddings.weight", config["vocab_size"], hidden),
        positions=tensor("embeddings.position_embeddings.weight", config["max_position_embeddings"], hidden),
        token_type=types[0],
        norm=norm("embeddings.LayerNorm"),
        layers=tuple(layer(f"encoder.layer.{number}") for number in range(config["num_hidden_layers"])),
    )
