"""`core sweep` (= `python -m experiments.sweep`): run one job, or with `-m` many, and gather them in one table.

Order of events: origin of the packages, environment, command line, safety pack, plugins, packs, prompts, device; only
then is a run folder made and Hydra started. Nothing is written before every one of these has been accepted.
"""

import json
import os
import sys
from collections.abc import Sequence


def main() -> int:
    """Run the sweep named by the process's arguments; return the exit code."""
    from engine.base.origin import foreign_packages

    # Before anything of `packs` is imported: the working directory comes first on the path under `python -m`.
    for problem in foreign_packages():
        sys.stderr.write(f"core sweep: SafetyOverrideError: {problem}\n")
        return 1
    from engine.base.command import run_command

    return run_command("core sweep", lambda: run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run a sweep and return 0, or 1 where a job failed or was lost.

    Raises the typed errors of a command line, pack, prompt file or device that is refused, and `KeyboardInterrupt`.
    """
    from engine.base.origin import verify_one_root
    from experiments.overrides import check_command_line, check_environment
    from experiments.packs_path import installed_ids
    from packs.safety.loader import load_safety_pack

    verify_one_root()
    check_environment(os.environ)
    line = check_command_line(argv, installed_ids)
    if line.help:
        sys.stdout.write(USAGE)
        return 0
    if not line.values and line.show is None:
        line = check_command_line([*DEFAULT_SWEEP, *argv], installed_ids)
    safety = load_safety_pack()
    from experiments import orchestrate

    if line.show is not None:
        orchestrate.show_configuration(line)
        return 0
    outcome = orchestrate.sweep(line, safety)
    if line.json:
        sys.stdout.write(json.dumps({"run": str(outcome.folder), **outcome.summary}, indent=2) + "\n")
    else:
        from experiments.printing import print_summary

        print_summary(outcome.folder, outcome.summary)
    return 0 if outcome.ok else 1


DEFAULT_SWEEP = ("-m", "identity=glob(*)")
"""What runs where no key is given: every identity pack on the shipped questions."""

USAGE = """\
usage: core sweep [KEY=VALUE ...] [-m] [--json] [--cfg job|hydra|all]

Run the prompts through the engine under an identity and a language pack and write a table. With -m, run one job for
each combination of values and gather them in one table. Without any key: -m 'identity=glob(*)'.

  identity=ID           default_general_v1 (default), precision_first_v1, generosity_first_v1, or your own
  language=ID           en (default), he, grc, or your own
  prompts=FILE          UTF-8 text, one prompt a line, or JSONL {"id": "...", "text": "..."}; default: shipped questions
  limit=N               the first N prompts only
  seed=N                keys the perturbation (default 0)
  perturb=X             size of the random motor that moves each initial state (default 0: seeds change nothing)
  alpha=X               damping of the reverse walk in a prompt's holonomy, 0 to 1 (default 0.5)
  steps=N               longest walk (default 12)
  device=cpu|gpu|tpu    an absent device is an error, never a silent fallback (default cpu)
  packs_path=DIR        your own packs: DIR/identity/ID.json, DIR/LANGUAGE/manifest.json
  resume=RUN_DIR        continue an interrupted or failed run, job by job
  hydra.run.dir=DIR     run folder (with -m: hydra.sweep.dir=DIR); default runs/TIME
  devices=N             spread the rows of a job over N devices (default 1)
  cluster.coordinator=HOST:PORT cluster.processes=N
                        share out the rows over N processes; start the others with core follow
  hydra/launcher=NAME   basic (default), joblib, ...
  -m, --multirun        several values: a,b  choice(a,b)  glob(*)  range(0,8)
  --json                print the summary as JSON
  --cfg job             print the composed configuration and run nothing

examples:
  core sweep -m 'identity=glob(*)'
  core sweep -m 'identity=glob(*)' 'seed=range(0,8)' perturb=0.01
"""


if __name__ == "__main__":
    sys.exit(main())
