"""`python -m experiments.tune`: search a draft identity pack's weights for a target alignment, with Optuna.

The sampler chooses values as it goes, which a planned sweep cannot (docs/decisions/0071), so this is an experiment of
its own. Every trial writes the draft with its weights into a folder of its own and evaluates the prompts through the
ordinary runtime: same loaders, same safety pack. The draft is not ratified: `CORE_ALLOW_UNRATIFIED_IDENTITY=1` must be
set by whoever runs this, and everything that comes out says `ratified: false`. Ratify what is found before it is used.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LOWEST, HIGHEST = 0.1, 10.0
"""Bounds of a weight; the loader takes 0 to 10."""


def main(argv: Sequence[str] | None = None) -> int:
    """Search, print the best weights, and return the exit code."""
    from engine.base.command import run_command

    return run_command("tune", lambda: run(argv))


def run(argv: Sequence[str] | None) -> int:
    """Run or continue a study and return 0. Raises the typed errors of packs, prompts and arguments."""
    from engine.base.origin import verify_one_root
    from experiments.overrides import check_environment

    verify_one_root()
    check_environment(os.environ)
    parser = argparse.ArgumentParser(prog="tune", description=__doc__, allow_abbrev=False)
    parser.add_argument("draft", type=Path, help="a draft identity pack: ID.json")
    parser.add_argument("--target", type=float, required=True, help="mean alignment to come near to, 0 to 1")
    parser.add_argument("--study", type=Path, required=True, help="folder of the study; an existing one is continued")
    parser.add_argument("--trials", type=int, default=20, help="trials of the study in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--language", default="en")
    parser.add_argument("--prompts", help="text or JSONL file; default: the shipped questions")
    parser.add_argument("--limit", type=int, help="the first prompts only")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    result = search(options)
    if options.json:
        sys.stdout.write(json.dumps(result, indent=2) + "\n")
    else:
        weights = ", ".join(f"{name} {value:.4f}" for name, value in result["weights"].items())
        sys.stdout.write(f"NOT RATIFIED: {result['pack']}: mean alignment {result['alignment']:.6f}, ")
        sys.stdout.write(f"target {result['target']:g}, after {result['trials']} trials: {weights}\n")
    return 0


def search(options: argparse.Namespace) -> dict[str, Any]:
    """Run the trials that a study still lacks and return its best, as plain values; also written to `best.json`.

    A trial's sampler is seeded by the study's seed and the trial's number, so that a study that was stopped goes on
    with the values that it would have had. Raises `ConfigError` for a target out of range, for a study of something
    else, and where Optuna is not installed.
    """
    from engine.base.errors import ConfigError
    from experiments.device import use_device
    from experiments.job import prompts_sha256
    from experiments.prompts import load_prompts
    from experiments.rundir import file_sha256, write_json
    from packs import strict_json
    from packs.safety.loader import load_safety_pack

    safety = load_safety_pack()
    if not 0.0 <= options.target <= 1.0 or options.trials < 1 or not 0 <= options.seed < 2**32 - 10**6:
        raise ConfigError("--target is a value from 0 to 1, --trials 1 or more, --seed 0 or more")
    try:
        import optuna
    except ImportError as error:
        raise ConfigError("optuna is not installed: pip install 'corefield[tune]'") from error
    if not options.draft.is_file():
        raise ConfigError(f"{options.draft} is no file")
    draft = strict_json.loads(options.draft.read_bytes(), source=str(options.draft))
    prompts = load_prompts(options.prompts, options.language, options.limit)
    use_device("cpu")
    bound = {
        "draft_sha256": file_sha256(options.draft),
        "prompts_sha256": prompts_sha256(prompts),
        "safety_sha256": safety.sha256,
        "target": options.target,
        "seed": options.seed,
        "language": options.language,
    }
    options.study.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.RDBStorage(f"sqlite:///{(options.study / 'study.sqlite').absolute()}")
    try:
        study = optuna.create_study(storage=storage, study_name="weights", load_if_exists=True)
        _require_same_study(study, bound)
        # A trial that was cut off by a kill has no value; it is made again under the next number.
        while (done := len(_complete(study, optuna))) < options.trials:
            study.sampler = optuna.samplers.TPESampler(seed=options.seed + done)
            trial = study.ask()
            weights = _suggest(trial, draft)
            folder = options.study / "trials" / f"{trial.number:06d}"
            alignment = mean_alignment(draft, weights, folder, options.language, prompts)
            trial.set_user_attr("alignment", alignment)
            study.tell(trial, abs(alignment - options.target))
        best = min(_complete(study, optuna), key=lambda found: (found.value, found.number))
    finally:
        storage.engine.dispose()
    result = {
        **bound,
        "pack": draft["pack_id"],
        "ratified": False,
        "trials": options.trials,
        "best_trial": best.number,
        "weights": dict(best.params),
        "alignment": best.user_attrs["alignment"],
        "values": [found.value for found in sorted(_complete(study, optuna), key=lambda found: found.number)],
    }
    write_json(options.study / "best.json", result)
    return result


def _complete(study: Any, optuna: Any) -> list[Any]:
    found: list[Any] = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    return found


def _suggest(trial: Any, draft: dict[str, Any]) -> dict[str, float]:
    return {
        str(axis["axis_id"]): float(trial.suggest_float(str(axis["axis_id"]), LOWEST, HIGHEST, log=True))
        for axis in draft["value_axes"]
    }


def _require_same_study(study: Any, bound: dict[str, Any]) -> None:
    from engine.base.errors import ConfigError

    for name, value in bound.items():
        recorded = study.user_attrs.get(name, value)
        if recorded != value:
            raise ConfigError(f"the study was begun with {name} {recorded}, now {value}")
        study.set_user_attr(name, value)


def mean_alignment(
    draft: dict[str, Any], weights: dict[str, float], folder: Path, language: str, prompts: Sequence[Any]
) -> float:
    """Return the mean alignment of the prompts that are answered under the draft with other weights.

    Raises `IdentityPackError` where the draft is no sound pack or unratified packs are not allowed, and `ConfigError`
    where no prompt is answered.
    """
    import numpy as np

    from engine.base.errors import ConfigError
    from engine.runtime import Runtime
    from experiments.rundir import write_json

    axes = [{**axis, "weight": weights[axis["axis_id"]]} for axis in draft["value_axes"]]
    place = folder / "identity"
    place.mkdir(parents=True, exist_ok=True)
    write_json(place / f"{draft['pack_id']}.json", {**draft, "value_axes": axes})
    runtime = Runtime.load(identity=draft["pack_id"], language=language, packs_path=str(folder))
    table = runtime.evaluate([(prompt.prompt_id, prompt.text) for prompt in prompts])
    values = [row["alignment"] for row in table.rows if row["status"] == "ok" and row["alignment"] is not None]
    if not values:
        raise ConfigError("no prompt is answered: there is nothing to search by")
    return float(np.mean(values))


if __name__ == "__main__":
    sys.exit(main())
