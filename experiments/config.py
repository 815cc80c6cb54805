"""Structured configuration of a sweep, and its conversion to a frozen dataclass at the edge.

`SweepConf` is the strict schema that Hydra composes into; nothing behind this module sees an OmegaConf object.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from engine.base.errors import ConfigError
from experiments.overrides import CONFIG_NAMES, DEVICES
from experiments.values import PACK_ID

MAX_SEED = 2**32 - 1
MAX_STEPS = 256
MAX_PERTURB = 10.0
MAX_EVERY = 10**6
MAX_KEEP = 1000
MAX_DEVICES = 4096


@dataclass
class PackConf:
    """A group's choice: the id of a pack and nothing more."""

    pack: str = "???"


@dataclass
class CheckpointConf:
    """How a job is kept while it runs; `every: null` evaluates all prompts as one batch and keeps nothing."""

    every: int | None = None
    keep: int = 2
    asynchronous: bool = False


@dataclass
class SweepConf:
    """What one job of a sweep is asked to do. The defaults stand in `configs/config.yaml`."""

    identity: PackConf = field(default_factory=PackConf)
    language: PackConf = field(default_factory=PackConf)
    prompt_file: str | None = None
    limit: int | None = None
    seed: int = 0
    perturb: float = 0.0
    alpha: float = 0.5
    steps: int = 12
    device: str = "cpu"
    devices: int = 1
    packs_path: str | None = None
    checkpoint: CheckpointConf = field(default_factory=CheckpointConf)
    compilation_cache: str | None = None


@dataclass(frozen=True)
class JobSettings:
    """One job, in plain values, checked. `prompts` is a file or None for the shipped questions.

    `limit` takes the first prompts only; `perturb` is the size (radians and units of length) of the random motor that
    moves each initial state, keyed by `seed`; `alpha` in [0, 1] damps the reverse walk; `steps` bounds the walk.
    `checkpoint_every` is the number of prompts after which the job is made durable (None: when it is done),
    `checkpoint_keep` the number of checkpoints retained. `compilation_cache` is a folder of compiled programs.
    `devices` is how many devices of the kind the rows are spread over.
    """

    identity: str
    language: str
    prompts: str | None
    limit: int | None
    seed: int
    perturb: float
    alpha: float
    steps: int
    device: str
    packs_path: str | None
    checkpoint_every: int | None = None
    checkpoint_keep: int = 2
    checkpoint_asynchronous: bool = False
    compilation_cache: str | None = None
    devices: int = 1

    def __post_init__(self) -> None:
        for name in ("identity", "language"):
            if not PACK_ID.fullmatch(getattr(self, name)):
                raise ConfigError(f"{name}={getattr(self, name)}: not a pack id")
        _between("seed", self.seed, 0, MAX_SEED)
        _between("steps", self.steps, 1, MAX_STEPS)
        _between("alpha", self.alpha, 0.0, 1.0)
        _between("perturb", self.perturb, 0.0, MAX_PERTURB)
        if self.limit is not None:
            _between("limit", self.limit, 1, 10**9)
        if self.checkpoint_every is not None:
            _between("checkpoint.every", self.checkpoint_every, 1, MAX_EVERY)
        _between("checkpoint.keep", self.checkpoint_keep, 1, MAX_KEEP)
        _between("devices", self.devices, 1, MAX_DEVICES)
        if self.device not in DEVICES:
            raise ConfigError(f"device={self.device}: expected one of {', '.join(DEVICES)}")

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, fit for JSON."""
        return asdict(self)


def settings_from(composed: Mapping[str, Any]) -> JobSettings:
    """Return the settings of a composed configuration, handed over as plain containers (`OmegaConf.to_container`)."""
    keys = {name: key for key, name in CONFIG_NAMES.items()}
    values = {keys.get(part.name, part.name): composed[part.name] for part in fields(SweepConf)}
    for group in ("identity", "language"):
        values[group] = values[group]["pack"]
    values.update({f"checkpoint_{name}": value for name, value in values.pop("checkpoint").items()})
    return JobSettings(**values)


def _between(name: str, value: int | float, low: int | float, high: int | float) -> None:
    # Written so that NaN fails.
    if not low <= value <= high:
        raise ConfigError(f"{name}={value}: expected a value from {low} to {high}")


def register_schema(user_packs: Mapping[str, tuple[str, ...]]) -> None:
    """Store the schema, and one choice for each of a user's own packs, in Hydra's ConfigStore.

    Only ids that the installation does not ship are passed in: storing a shipped id twice makes Hydra warn.
    """
    from hydra.core.config_store import ConfigStore

    store = ConfigStore.instance()
    store.store(name="sweep_schema", node=SweepConf, provider="corefield")
    for group, names in user_packs.items():
        for name in names:
            store.store(group=group, name=name, node={"pack": name}, provider="corefield")
