"""The command line of a sweep is an allow-list, checked before Hydra is imported. Standard library only.

Whatever is not listed here is refused: flags are exact (argparse abbreviations such as `--config-d` defeat a
deny-list), keys are the fields of our own configuration and a few of Hydra's, values follow `experiments.values`.
Attempts at the safety pack or at the configuration tree raise `SafetyOverrideError`, slips raise `ConfigError` with
the nearest names. Nothing the user typed reaches Hydra: `CommandLine.hydra_arguments` is written anew from the values.
"""

import difflib
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.base.errors import ConfigError, UsageError
from experiments import values
from experiments.values import Value
from packs.errors import LanguagePackError, SafetyOverrideError

DEVICES = ("cpu", "gpu", "tpu")
LAUNCHERS = ("basic", "joblib", "submitit_local", "submitit_slurm", "ray")
SWEEPERS = ("basic",)
"""A sweeper that chooses values as it goes cannot be planned (see `experiments.planning`)."""

PACK_GROUPS = ("identity", "language")
CHECKPOINT_INTEGER_KEYS = ("checkpoint.every", "checkpoint.keep")
INTEGER_KEYS = ("seed", "steps", "limit", "devices", *CHECKPOINT_INTEGER_KEYS)
NUMBER_KEYS = ("alpha", "perturb")
PATH_KEYS = ("prompts", "packs_path", "compilation_cache", "resume")
WORD_KEYS: Mapping[str, tuple[str, ...]] = {"device": DEVICES, "checkpoint.asynchronous": ("true", "false")}
HOST_INTEGER_KEYS = ("retries", "cluster.processes", "cluster.timeout_s")
HOST_KEYS = (*HOST_INTEGER_KEYS, "cluster.coordinator")
"""Keys for whoever starts the jobs; no job sees them, and they are no part of what a run is."""

RUN_FOLDER_KEYS = ("hydra.run.dir", "hydra.sweep.dir")
HYDRA_INTEGER_KEYS = (
    "hydra.launcher.n_jobs",
    "hydra.launcher.timeout_min",
    "hydra.launcher.cpus_per_task",
    "hydra.launcher.gpus_per_node",
    "hydra.launcher.mem_gb",
    "hydra.launcher.max_num_timeout",
    "hydra.sweeper.max_batch_size",
)
HYDRA_NAME_KEYS = ("hydra.launcher.partition", "hydra.launcher.account", "hydra.launcher.qos")
"""Names of a cluster's queues and accounts; nothing of a launcher that ends in a shell can be set."""

HYDRA_WORD_KEYS: Mapping[str, tuple[str, ...]] = {
    "hydra/launcher": LAUNCHERS,
    "hydra.launcher.address": ("local", "auto"),
    "hydra/sweeper": SWEEPERS,
    "hydra.verbose": ("true", "false"),
    "hydra.mode": ("RUN", "MULTIRUN"),
}
TASK_KEYS = (*PACK_GROUPS, *INTEGER_KEYS, *NUMBER_KEYS, *PATH_KEYS, *WORD_KEYS)
HYDRA_KEYS = (*RUN_FOLDER_KEYS, *HYDRA_INTEGER_KEYS, *HYDRA_NAME_KEYS, *HYDRA_WORD_KEYS)
CONFIG_NAMES = {"prompts": "prompt_file"}
"""Keys that have another name in the configuration: `configs/prompts` makes `prompts` a group in Hydra's eyes."""

UNSWEEPABLE = ("limit", "devices", *PATH_KEYS, *CHECKPOINT_INTEGER_KEYS, *WORD_KEYS, *HOST_KEYS, *HYDRA_KEYS)
"""Keys with one value for the whole sweep."""

PLAIN_FLAGS = {
    "-m": "multirun",
    "--multirun": "multirun",
    "-h": "help",
    "--help": "help",
    "--json": "json",
    "--resolve": "resolve",
}
SHOW_FLAGS = ("-c", "--cfg")
SHOWABLE = ("job", "hydra", "all")
ESCAPE_FLAGS = ("--config-path", "--config-name", "--config-dir", "--experimental-rerun")
ESCAPE_SHORT_FLAGS = ("-cp", "-cn", "-cd")

MAX_ARGUMENTS = 256
MAX_ARGUMENT_LENGTH = 4096
MAX_JOBS = 10_000
MAX_RETRIES = 100

WEAKENING_VARIABLES = ("HYDRA_INSTANTIATE_ALLOWLIST_OVERRIDE", "HYDRA_MAIN_MODULE")
WEAKENING_PREFIXES = ("CORE_SAFETY_PACK",)
FAST_MATH = re.compile(r"--xla_\w*fast_(\w+)(?:=(\S*))?")

InstalledIds = Callable[[str, str | None], Sequence[str]]
"""(group, packs_path) -> the pack ids that a glob in that group can find."""


@dataclass(frozen=True)
class CommandLine:
    """A checked command line: flags, and for each key (in the order given) the plain values it stands for."""

    values: Mapping[str, Value] = field(default_factory=dict)
    multirun: bool = False
    help: bool = False
    json: bool = False
    resolve: bool = False
    show: str | None = None

    def single(self, key: str) -> str | None:
        """Return the one value of `key`, or None where it was not given."""
        return self.values[key].items[0] if key in self.values else None

    def jobs(self) -> Iterator[dict[str, str]]:
        """Yield the task values of every job, in the order in which Hydra's basic sweeper runs them."""
        swept = {key: value.items for key, value in self.values.items() if key in TASK_KEYS and key != "resume"}
        for combination in itertools.product(*swept.values()):
            yield dict(zip(swept, combination, strict=True))

    def with_launcher_of(self, other: "CommandLine") -> "CommandLine":
        """Return this command line with the `hydra...` values of `other`: how to run, not what."""
        how = {key: value for key, value in other.values.items() if key in HYDRA_KEYS}
        return replace(self, values={**self.values, **how})

    def recorded(self) -> list[str]:
        """Return the task overrides with globs and ranges expanded, fit to be given to `check_command_line` again."""
        return [
            f"{key}={quoted_path(value.items[0]) if key in PATH_KEYS else ','.join(value.items)}"
            for key, value in self.values.items()
            if key in TASK_KEYS and key != "resume"
        ]

    def hydra_arguments(self, *, first_job: bool = False) -> list[str]:
        """Return the overrides for Hydra, written anew from the checked values; run folders are ours to set.

        With `first_job` a sweep is reduced to the first value of each key.
        """
        written = []
        for key, value in self.values.items():
            if key not in (*RUN_FOLDER_KEYS, *HOST_KEYS, "resume", "hydra.mode"):
                quote = quoted_path if key in PATH_KEYS else str
                name = CONFIG_NAMES.get(key, key)
                items = value.items[:1] if first_job else value.items
                written.append(f"{name}={','.join(quote(item) for item in items)}")
        return written


def quoted_path(path: str) -> str:
    """Return a path as one quoted string of Hydra's grammar. Raises `ConfigError` where it cannot be one."""
    if "$" in path or not path.isprintable() or "\\" in path or ("'" in path and '"' in path):
        raise ConfigError(f"the path {path!r} holds a character that is not supported")
    return f'"{path}"' if "'" in path else f"'{path}'"


def check_environment(environment: Mapping[str, str]) -> None:
    """Raise `SafetyOverrideError` for a variable that picks a safety pack or weakens a check."""
    for name, value in environment.items():
        if name in WEAKENING_VARIABLES or name.upper().startswith(WEAKENING_PREFIXES):
            raise SafetyOverrideError(f"environment variable {name} is set: unset it; no variable may weaken a check")
        if name == "XLA_FLAGS":
            for match in FAST_MATH.finditer(value):
                is_on = (match[2] or "true").lower() not in ("false", "0")
                # `..._fast_math_honor_nans` is the one kind that protects when it is on.
                if is_on != ("honor" in match[1]):
                    raise SafetyOverrideError(f"XLA_FLAGS holds {match[0]}: NaN and infinity must stay visible")


def check_command_line(argv: Sequence[str], installed: InstalledIds) -> CommandLine:
    """Return the checked command line.

    Raises `SafetyOverrideError`, `LanguagePackError`, `ConfigError` or, for a malformed flag, `UsageError`.
    """
    if len(argv) > MAX_ARGUMENTS:
        raise UsageError(f"{len(argv)} arguments; at most {MAX_ARGUMENTS} are read")
    flags, overrides = _sort_arguments(argv)
    texts: dict[str, str] = {}
    for argument in overrides:
        key, text = _check_key(argument)
        if key in texts:
            raise ConfigError(f"{key} is given twice")
        texts[key] = text
    packs_path = values.parse_path("packs_path", texts["packs_path"]).items[0] if "packs_path" in texts else None
    parsed = {key: _parse_value(key, text, packs_path, installed) for key, text in texts.items()}
    mode = parsed["hydra.mode"].items[0] if "hydra.mode" in parsed else None
    if mode == "RUN" and "multirun" in flags:
        raise ConfigError("hydra.mode=RUN contradicts -m")
    line = CommandLine(
        values=parsed,
        multirun="multirun" in flags or mode == "MULTIRUN",
        help="help" in flags,
        json="json" in flags,
        resolve="resolve" in flags,
        show=flags.get("show"),
    )
    _check_combination(line)
    return line


def check_job_overrides(overrides: Sequence[str]) -> None:
    """Raise unless every task override that Hydra reports in a job is one that `hydra_arguments` can write."""
    keys = {name: key for key, name in CONFIG_NAMES.items()}
    for argument in overrides:
        name, equals, rest = argument.partition("=")
        key, text = _check_key(keys.get(name, name) + equals + rest)
        if key not in TASK_KEYS or key == "resume":
            raise SafetyOverrideError(f"a job was started with {key}=, which is no key of a job")
        value = _parse_value(key, text, None, lambda group, path: ())
        if value.is_sweep:
            raise SafetyOverrideError(f"a job was started with several values of {key}")


def _sort_arguments(argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    flags: dict[str, str] = {}
    overrides: list[str] = []
    rest = iter(argv)
    for argument in rest:
        if len(argument) > MAX_ARGUMENT_LENGTH:
            raise ConfigError(f"an argument of {len(argument)} characters; at most {MAX_ARGUMENT_LENGTH} are read")
        name, equals, value = argument.partition("=")
        if not argument.startswith("-"):
            overrides.append(argument)
        elif argument in PLAIN_FLAGS:
            flags[PLAIN_FLAGS[argument]] = "true"
        elif name in SHOW_FLAGS:
            what = value if equals else next(rest, "")
            if what not in SHOWABLE:
                raise UsageError(f"{name} needs one of {', '.join(SHOWABLE)}")
            flags["show"] = what
        else:
            raise _refused_flag(name)
    return flags, overrides


def _refused_flag(name: str) -> ConfigError | SafetyOverrideError:
    is_abbreviation = len(name) > 2 and any(flag.startswith(name) for flag in ESCAPE_FLAGS)
    is_escape = any(name.startswith(flag) for flag in ESCAPE_FLAGS) or name.startswith(ESCAPE_SHORT_FLAGS)
    if is_abbreviation or is_escape:
        return SafetyOverrideError(f"{name} is refused: the configuration tree is the installed one and no other")
    return UsageError(f"unknown flag {name}{_did_you_mean(name, [*PLAIN_FLAGS, *SHOW_FLAGS])}")


def _check_key(argument: str) -> tuple[str, str]:
    """Return key and value text of `key=value`, or raise what the attempt deserves."""
    key, equals, text = argument.partition("=")
    if argument[:1] in ("+", "~"):
        raise _refused_prefix(key)
    if "$" in argument:
        raise SafetyOverrideError(f"{key}: interpolation is refused; write the value itself")
    if "@" in key or ":" in key:
        raise SafetyOverrideError(f"{key}: a package is refused; the place of a group in the tree is fixed")
    if ".." in key or key.startswith(("/", "_")) or any(part.startswith("_") for part in re.split(r"[./]", key)):
        raise SafetyOverrideError(f"{key} is refused: it leaves the configuration tree")
    if _names_safety(key):
        raise SafetyOverrideError(f"{key} is refused: the safety pack is loaded by code; no configuration reaches it")
    if key in (*TASK_KEYS, *HOST_KEYS, *HYDRA_KEYS):
        if not equals:
            raise ConfigError(f"{key} needs a value: {key}=...")
        return key, text
    root = re.split(r"[./]", key)[0]
    if root == "hydra":
        raise SafetyOverrideError(f"{key} is refused: of hydra.* only {', '.join(HYDRA_KEYS)} may be set")
    if root in PACK_GROUPS and root != key:
        raise SafetyOverrideError(f"{key} is refused: a configuration names a pack and changes nothing in it")
    raise ConfigError(f"unknown override {key!r}{_did_you_mean(key, TASK_KEYS)}")


def _refused_prefix(key: str) -> SafetyOverrideError | LanguagePackError:
    name = key.lstrip("+~")
    if key.startswith("~") and name == "language":
        return LanguagePackError("~language: an identity needs a language pack and cannot run without one")
    hint = "" if _names_safety(name) else _did_you_mean(name, TASK_KEYS)
    return SafetyOverrideError(f"{key} is refused: '+', '++' and '~' would change the configuration tree{hint}")


def _names_safety(key: str) -> bool:
    letters = "".join(c for c in unicodedata.normalize("NFKC", key).casefold() if c.isalpha())
    return "safety" in letters or "boundar" in letters or "ratified" in letters


def _did_you_mean(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else f"; known: {', '.join(known)}"


def _parse_value(key: str, text: str, packs_path: str | None, installed: InstalledIds) -> Value:
    if key == "language" and text in ("", "null", "none"):
        raise LanguagePackError(f"language={text}: an identity needs a language pack and cannot run without one")
    if key == "identity" and text == "null":
        # An identity is always loaded: null names the default pack.
        return Value(("default_general_v1",), is_sweep=False)
    if not text or text == "null":
        raise ConfigError(f"{key} needs a value; leave it out for the default")
    if key in PACK_GROUPS:
        return values.parse_pack_ids(key, text, installed(key, packs_path))
    return _parse_plain(key, text)


def _parse_plain(key: str, text: str) -> Value:
    if key in (*INTEGER_KEYS, *HOST_INTEGER_KEYS, *HYDRA_INTEGER_KEYS):
        return values.parse_integers(key, text)
    if key in NUMBER_KEYS:
        return values.parse_numbers(key, text)
    if key in WORD_KEYS:
        return values.parse_words(key, text, WORD_KEYS[key])
    if key == "cluster.coordinator":
        return values.parse_address(key, text)
    if key in HYDRA_NAME_KEYS:
        return values.parse_name(key, text)
    if key in HYDRA_WORD_KEYS:
        return _parse_hydra_word(key, text)
    return values.parse_path(key, text)


def _check_cluster(line: CommandLine) -> None:
    given = [key for key in line.values if key.startswith("cluster.")]
    if given and not {"cluster.coordinator", "cluster.processes"} <= set(given):
        raise ConfigError(f"{given[0]}: a cluster needs cluster.coordinator=HOST:PORT and cluster.processes=N")
    if given and (line.single("hydra/launcher") or "basic") != "basic":
        raise ConfigError("a cluster shares out the rows of each job; its jobs run one after another (basic launcher)")
    if given and (line.single("devices") or "1") != "1":
        raise ConfigError("a cluster takes all devices of its processes; devices=N is for one process")


def _parse_hydra_word(key: str, text: str) -> Value:
    if ".." in text or "/" in text:
        raise SafetyOverrideError(f"{key}={text}: a value that leaves the configuration tree is refused")
    return values.parse_words(key, text, HYDRA_WORD_KEYS[key])


def _check_combination(line: CommandLine) -> None:
    for key, value in line.values.items():
        if value.is_sweep and key in UNSWEEPABLE:
            raise ConfigError(f"{key} has one value for the whole sweep")
        if value.is_sweep and not line.multirun:
            raise ConfigError(f"{key} has several values: add -m to run one job for each")
    if "retries" in line.values and not 0 <= int(line.values["retries"].items[0]) <= MAX_RETRIES:
        raise ConfigError(f"retries={line.single('retries')}: expected a value from 0 to {MAX_RETRIES}")
    _check_cluster(line)
    if "resume" in line.values and set(line.values) - {
        "resume",
        "hydra/launcher",
        *HOST_KEYS,
        *HYDRA_INTEGER_KEYS,
        *HYDRA_NAME_KEYS,
    }:
        raise ConfigError("resume=RUN_DIR continues a recorded run and takes no other override than a launcher")
    folder = "hydra.run.dir" if line.multirun else "hydra.sweep.dir"
    if folder in line.values:
        wanted = "hydra.sweep.dir" if line.multirun else "hydra.run.dir"
        raise ConfigError(f"{folder} does not apply here; use {wanted}=DIR {'with' if line.multirun else 'without'} -m")
    count = 1
    for key, value in line.values.items():
        count *= len(value.items) if key in TASK_KEYS else 1
    if count > MAX_JOBS:
        raise ConfigError(f"the sweep would run {count} jobs; at most {MAX_JOBS} are planned at once")
