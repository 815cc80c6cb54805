"""Every channel by which a command line or the environment could reach the safety pack or the configuration tree.

A row is (name, arguments, expected error, words of its message). `ACCEPTED` rows are legitimate and must pass: a guard
that refuses everything is none.
"""

from engine.base.errors import ConfigError, UsageError
from packs.errors import IdentityPackError as IdentityPackError
from packs.errors import LanguagePackError, SafetyOverrideError

Refused = tuple[str, list[str], type[Exception], str]

SAFETY_KEYS: list[Refused] = [
    (f"safety key {text}", [text], SafetyOverrideError, "refused")
    for text in (
        "safety=other",
        "safety=null",
        "safety=",
        "safety",
        "safety_pack=core_safety_axes_v1",
        "safety.pack=mine",
        "safety/pack=mine",
        "packs.safety=mine",
        "packs/safety=mine",
        "runtime.safety=false",
        "SAFETY=other",
        "Safety_Pack=other",
        "sa-fety=other",
        "ｓａｆｅｔｙ=other",
        "core_safety_axes_v1=none",
        "identity.safety=off",
        "boundary_ids=[]",
        "boundaries=[]",
        "manifold.boundary_ids=[]",
        "no_safety=true",
        "disable_safety_check=true",
        "allow_unratified_safety=1",
        "unratified=1",
    )
]

PREFIXES: list[Refused] = [
    (f"prefix {text}", [text], SafetyOverrideError, "refused")
    for text in (
        "+safety=other",
        "++safety=other",
        "~safety",
        "+identity=precision_first_v1",
        "++identity=precision_first_v1",
        "~identity",
        "~identity=default_general_v1",
        "+seed=1",
        "++seed=1",
        "~seed",
        "~prompts",
        "+new_key=1",
        "++identity.pack=x",
        "+hydra.job.env_set.CORE_ALLOW_UNRATIFIED_SAFETY=1",
        "++hydra.job.env_set.PATH=/tmp",
        "+hydra/callbacks=log",
        "~hydra.searchpath",
        "~hydra/launcher",
        "+identity@safety=default_general_v1",
        "+",
        "~",
        "+++seed=1",
        "+ seed=1",
        "+$seed=1",
    )
]

PACKAGES_AND_TARGETS: list[Refused] = [
    (f"package or target {text}", [text], SafetyOverrideError, "refused")
    for text in (
        "identity@safety=default_general_v1",
        "identity@_global_=default_general_v1",
        "identity@:safety=default_general_v1",
        "identity@identity:safety=default_general_v1",
        "@package=_global_",
        "_target_=pathlib.Path.write_text",
        "identity._target_=os.system",
        "hydra.launcher._target_=os.system",
        "hydra.sweeper._target_=os.system",
        "_self_=1",
        "_recursive_=false",
        "_convert_=all",
        "identity/../safety=x",
        "../identity=default_general_v1",
        "/identity=default_general_v1",
        "/safety=default",
        "identity.pack=core_safety_axes_v1",
        "identity.alignment_threshold=0",
        "identity/value_axes=x",
        "language.pack=/tmp/x",
        "identity[0]._x=1",
    )
]

INTERPOLATIONS: list[Refused] = [
    (f"interpolation {text}", [text], SafetyOverrideError, "interpolation")
    for text in (
        "identity=${language}",
        "identity=${oc.env:HOME}",
        "prompts=${oc.env:HOME}/x",
        "seed=${now:%S}",
        "language=${hydra:runtime.cwd}",
        "identity=glob(${oc.env:X})",
        "seed=range(0,${seed})",
        "hydra.run.dir=${oc.env:HOME}",
        "device=${oc.decode:cpu}",
        "${identity}=x",
        "prompts='${oc.env:HOME}'",
        "packs_path=$HOME/packs",
    )
]

HYDRA_KEYS: list[Refused] = [
    (f"hydra {text}", [text], SafetyOverrideError, "refused")
    for text in (
        "hydra.searchpath=[file:///tmp]",
        "hydra.searchpath=[pkg://evil]",
        "hydra.job.env_set.CORE_ALLOW_UNRATIFIED_SAFETY=1",
        "hydra.job.env_set={X:1}",
        "hydra.job.env_copy=[X]",
        "hydra.job.chdir=true",
        "hydra.job.name=x",
        "hydra.job.config_name=other",
        "hydra.callbacks.x._target_=evil.Callback",
        "hydra/callbacks=evil",
        "hydra/env=evil",
        "hydra/job_logging=default",
        "hydra/hydra_logging=colorlog",
        "hydra/output=default",
        "hydra/help=default",
        "hydra.output_subdir=../../x",
        "hydra.sweep.subdir=../../x",
        "hydra.runtime.cwd=/tmp",
        "hydra.sweeper.params.identity=../../x",
        "hydra.launcher.setup=[rm]",
        "hydra.launcher.additional_parameters={x:y}",
        "hydra.launcher.srun_args=[x]",
        "hydra.launcher.submitit_folder=/tmp",
        "hydra=x",
        "hydra.help.template=x",
        "hydra.overrides.task=[]",
        "hydra.job_logging.handlers.x.class=evil.Handler",
    )
]

FLAGS: list[Refused] = [
    (f"flag {' '.join(arguments)}", arguments, SafetyOverrideError, "refused")
    for arguments in (
        ["--config-dir", "/tmp"],
        ["--config-dir=/tmp"],
        ["--config-di", "/tmp"],
        ["--config-d", "/tmp"],
        ["--config-d=/tmp"],
        ["-cd", "/tmp"],
        ["-cd=/tmp"],
        ["-cd/tmp"],
        ["--config-path", "/tmp"],
        ["--config-p", "/tmp"],
        ["-cp", "/tmp"],
        ["-cp/tmp"],
        ["--config-name", "other"],
        ["--config-n", "other"],
        ["-cn", "other"],
        ["-cnother"],
        ["--config-", "x"],
        ["--config", "x"],
        ["--conf", "x"],
        ["--co", "x"],
        ["--experimental-rerun", "x.pickle"],
        ["--experimental-rerun=x.pickle"],
        ["--exp", "x.pickle"],
        ["--e", "x.pickle"],
        ["seed=1", "--config-dir", "/tmp"],
        ["-m", "--config-dir", "/tmp"],
    )
]

ESCAPING_VALUES: list[Refused] = [
    (f"value {text}", [text], SafetyOverrideError, "path")
    for text in (
        "identity=../../x",
        "identity=../safety/core_safety_axes_v1",
        "identity=/etc/passwd",
        "identity=safety/core_safety_axes_v1",
        "identity=a/../b",
        "identity=..",
        "identity=default_general_v1,../x",
        "identity=choice(default_general_v1,../x)",
        "identity=glob(../*)",
        "identity=glob(*,exclude=../x)",
        "language=../../x",
        "language=en/../he",
        "identity=..\\x",
        "prompts=../../etc/passwd",
        "prompts=/tmp/../etc/passwd",
        "packs_path=..",
        "packs_path=/tmp/x/../../y",
        "resume=../run",
        "hydra.run.dir=../../x",
        "prompts='../x'",
    )
] + [
    (f"value {text}", [text], SafetyOverrideError, "leaves the configuration tree")
    for text in ("hydra/launcher=../x", "hydra/launcher=pkg/evil", "hydra/sweeper=../../x")
]

SLIPS: list[Refused] = [
    ("misspelt identity", ["identty=precision_first_v1"], ConfigError, "did you mean identity"),
    ("misspelt language", ["langauge=en"], ConfigError, "did you mean language"),
    ("misspelt seed", ["sed=1"], ConfigError, "did you mean seed"),
    ("misspelt perturb", ["pertrub=0.1"], ConfigError, "did you mean perturb"),
    ("misspelt prompts", ["prompt=x.txt"], ConfigError, "did you mean prompts"),
    ("misspelt packs_path", ["pack_path=/x"], ConfigError, "did you mean packs_path"),
    ("misspelt behind +", ["+identty=x"], SafetyOverrideError, "did you mean identity"),
    ("misspelt behind ++", ["++sed=1"], SafetyOverrideError, "did you mean seed"),
    ("misspelt behind ~", ["~langage"], SafetyOverrideError, "did you mean language"),
    ("look-alike key", ["іdentity=x"], ConfigError, "unknown override"),  # a Cyrillic letter
    ("unknown key", ["quux=1"], ConfigError, "known: identity"),
    ("capital key", ["Identity=x"], ConfigError, "did you mean identity"),
    ("key with a space", ["identity =x"], ConfigError, "unknown override"),
    ("internal name", ["prompt_file=x"], ConfigError, "unknown override"),
    ("no value", ["seed"], ConfigError, "needs a value"),
    ("empty value", ["seed="], ConfigError, "needs a value"),
    ("empty argument", [""], ConfigError, "unknown override"),
    ("given twice", ["seed=1", "seed=2"], ConfigError, "twice"),
    ("bad id", ["identity=Default"], ConfigError, "pack id"),
    ("zero-width id", ["identity=default\u200b_general_v1"], ConfigError, "pack id"),
    ("id with a space", ["identity=default general"], ConfigError, "pack id"),
    ("id as a list", ["identity=[a,b]"], ConfigError, "pack id"),
    ("id as a mapping", ["identity={pack:x}"], ConfigError, "pack id"),
    ("id too long", ["identity=" + "a" * 65], ConfigError, "pack id"),
    ("quoted id", ["identity='x'"], ConfigError, "pack id"),
    ("range of ids", ["-m", "identity=range(0,3)"], ConfigError, "not supported"),
    ("glob without a match", ["-m", "identity=glob(zzz*)"], ConfigError, "matches none"),
    ("glob with a class", ["-m", "identity=glob([a-z]*)"], ConfigError, "glob pattern"),
    ("nan", ["perturb=nan"], ConfigError, "finite"),
    ("inf", ["perturb=inf"], ConfigError, "finite"),
    ("-inf", ["alpha=-inf"], ConfigError, "finite"),
    ("NaN", ["alpha=NaN"], ConfigError, "finite"),
    ("overflow to infinity", ["perturb=1e999"], ConfigError, "finite"),
    ("nan in a choice", ["-m", "alpha=choice(0.1,nan)"], ConfigError, "finite"),
    ("infinite range", ["-m", "alpha=range(0,inf,1)"], ConfigError, "finite"),
    ("words as a number", ["seed=one"], ConfigError, "whole number"),
    ("fraction as a seed", ["seed=1.5"], ConfigError, "whole number"),
    ("huge integer", ["seed=" + "9" * 30], ConfigError, "whole number"),
    ("hexadecimal", ["seed=0x10"], ConfigError, "whole number"),
    ("endless range", ["-m", "seed=range(0,10,0)"], ConfigError, "step 0"),
    ("huge range", ["-m", "seed=range(0,1000000000)"], ConfigError, "expected 1 to"),
    ("empty range", ["-m", "seed=range(3,3)"], ConfigError, "expected 1 to"),
    ("too many jobs", ["-m", "seed=range(0,5000)", "steps=range(1,10)"], ConfigError, "at most"),
    ("value twice", ["-m", "seed=1,1"], ConfigError, "twice"),
    ("shuffle", ["-m", "seed=shuffle(1,2)"], ConfigError, "not supported"),
    ("interval", ["-m", "alpha=interval(0,1)"], ConfigError, "not supported"),
    ("sweep without -m", ["seed=1,2"], ConfigError, "add -m"),
    ("glob without -m", ["identity=glob(*)"], ConfigError, "add -m"),
    ("unknown device", ["device=cuda"], ConfigError, "expected one of"),
    ("two devices", ["-m", "device=cpu,gpu"], ConfigError, "one value"),
    ("shell in a partition", ["hydra.launcher.partition=x;rm"], ConfigError, "expected a name"),
    ("newline in an account", ["hydra.launcher.account=x\n#SBATCH"], ConfigError, "expected a name"),
    ("a sweeper without a plan", ["-m", "hydra/sweeper=optuna"], ConfigError, "expected one of"),
    ("unknown launcher", ["hydra/launcher=dask"], ConfigError, "expected one of"),
    ("mode against -m", ["-m", "hydra.mode=RUN"], ConfigError, "contradicts"),
    ("run folder with -m", ["-m", "hydra.run.dir=/tmp/x"], ConfigError, "hydra.sweep.dir"),
    ("sweep folder without -m", ["hydra.sweep.dir=/tmp/x"], ConfigError, "hydra.run.dir"),
    ("resume with more", ["resume=/tmp/x", "seed=1"], ConfigError, "no other override"),
    ("path with a null", ["prompts=a\0b"], ConfigError, "not supported"),
    ("path with a newline", ["prompts=a\nb"], ConfigError, "not supported"),
    ("path with ~", ["prompts=~/x"], ConfigError, "absolute"),
    ("long argument", ["prompts=/" + "x" * 5000], ConfigError, "characters"),
    ("no language", ["language=null"], LanguagePackError, "language pack"),
    ("none as language", ["language=none"], LanguagePackError, "language pack"),
    ("empty language", ["language="], LanguagePackError, "language pack"),
    ("language deleted", ["~language"], LanguagePackError, "language pack"),
    ("unknown flag", ["--frobnicate"], UsageError, "unknown flag"),
    ("misspelt flag", ["--multirn"], UsageError, "did you mean --multirun"),
    ("abbreviated flag", ["--multi"], UsageError, "unknown flag"),
    ("info", ["--info"], UsageError, "unknown flag"),
    ("shell completion", ["--shell-completion"], UsageError, "unknown flag"),
    ("package of --cfg", ["--package", "x"], UsageError, "unknown flag"),
    ("hydra help", ["--hydra-help"], UsageError, "unknown flag"),
    ("double dash", ["--", "safety=x"], UsageError, "unknown flag"),
    ("single dash", ["-"], UsageError, "unknown flag"),
    ("--cfg of nothing", ["--cfg"], UsageError, "needs one of"),
    ("--cfg of something else", ["--cfg", "safety"], UsageError, "needs one of"),
    ("too many arguments", ["seed=1"] * 300, UsageError, "at most"),
]

CLUSTERS: list[Refused] = [
    ("a shell in a coordinator", ["cluster.coordinator=$(id):1", "cluster.processes=2"], SafetyOverrideError,
     "interpolation"),
    ("a coordinator without a port", ["cluster.coordinator=host", "cluster.processes=2"], ConfigError, "HOST:PORT"),
    ("a URL", ["cluster.coordinator=http://host:1", "cluster.processes=2"], ConfigError, "HOST:PORT"),
    ("a socket file", ["cluster.coordinator=unix:/tmp/s", "cluster.processes=2"], ConfigError, "HOST:PORT"),
    ("a user", ["cluster.coordinator=root@host:1", "cluster.processes=2"], ConfigError, "HOST:PORT"),
    ("no coordinator", ["cluster.processes=2"], ConfigError, "a cluster needs"),
    ("no number of processes", ["cluster.coordinator=h:1"], ConfigError, "a cluster needs"),
    ("a fraction of a process", ["cluster.coordinator=h:1", "cluster.processes=2.5"], ConfigError, "whole number"),
    ("several coordinators", ["-m", "cluster.coordinator=h:1,h:2", "cluster.processes=2"], ConfigError, "HOST:PORT"),
    ("an index of one's own", ["cluster.index=3"], ConfigError, "cluster.index"),
    ("any other key of a cluster", ["cluster.safety=off"], SafetyOverrideError, "cluster.safety"),
    ("a cluster beside a launcher", ["-m", "cluster.coordinator=h:1", "cluster.processes=2", "hydra/launcher=ray"],
     ConfigError, "basic launcher"),
    ("devices beside a cluster", ["cluster.coordinator=h:1", "cluster.processes=2", "devices=2"], ConfigError,
     "for one process"),
    ("several counts of devices", ["-m", "devices=1,2"], ConfigError, "one value"),
    ("devices that are no number", ["devices=all"], ConfigError, "whole number"),
]  # fmt: skip

REFUSED: list[Refused] = [
    *SAFETY_KEYS,
    *PREFIXES,
    *PACKAGES_AND_TARGETS,
    *INTERPOLATIONS,
    *HYDRA_KEYS,
    *FLAGS,
    *ESCAPING_VALUES,
    *SLIPS,
    *CLUSTERS,
]

ACCEPTED: list[tuple[str, list[str], dict[str, tuple[str, ...]]]] = [
    ("nothing", [], {}),
    ("one identity", ["identity=precision_first_v1"], {"identity": ("precision_first_v1",)}),
    ("null identity is the default", ["identity=null"], {"identity": ("default_general_v1",)}),
    ("two identities", ["-m", "identity=b,a"], {"identity": ("b", "a")}),
    ("choice", ["-m", "identity=choice(a, b)"], {"identity": ("a", "b")}),
    ("glob", ["-m", "identity=glob(*)"], {"identity": ("default_general_v1", "generosity_first_v1", "mine")}),
    (
        "glob with exclude",
        ["-m", "identity=glob(*,exclude=m*)"],
        {"identity": ("default_general_v1", "generosity_first_v1")},
    ),
    ("range", ["-m", "seed=range(0,4)"], {"seed": ("0", "1", "2", "3")}),
    ("range with step", ["-m", "seed=range(4,0,-2)"], {"seed": ("4", "2")}),
    ("named range", ["-m", "seed=range(start=1,stop=3)"], {"seed": ("1", "2")}),
    ("range of one argument", ["-m", "seed=range(2)"], {"seed": ("0", "1")}),
    ("range of numbers", ["-m", "alpha=range(0,1,0.5)"], {"alpha": ("0.0", "0.5")}),
    ("numbers", ["perturb=1e-3", "alpha=.5"], {"perturb": ("0.001",), "alpha": ("0.5",)}),
    ("absolute path", ["prompts=/data/a b.txt"], {"prompts": ("/data/a b.txt",)}),
    ("quoted path", ["prompts='/data/a,b.txt'"], {"prompts": ("/data/a,b.txt",)}),
    ("apostrophe", ["prompts=/o'neil/x"], {"prompts": ("/o'neil/x",)}),
    ("dots that are no parent", ["prompts=/data/a..b.txt"], {"prompts": ("/data/a..b.txt",)}),
    ("device", ["device=gpu"], {"device": ("gpu",)}),
    ("launcher", ["-m", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"], {"hydra/launcher": ("joblib",)}),
    ("partition", ["-m", "hydra.launcher.partition=gpu-long"], {"hydra.launcher.partition": ("gpu-long",)}),
    ("run folder", ["hydra.run.dir=/data/run"], {"hydra.run.dir": ("/data/run",)}),
    ("sweep folder", ["-m", "hydra.sweep.dir=/data/run"], {"hydra.sweep.dir": ("/data/run",)}),
    ("multirun by mode", ["hydra.mode=MULTIRUN", "seed=1,2"], {"seed": ("1", "2")}),
    ("resume", ["resume=/data/run"], {"resume": ("/data/run",)}),
    ("devices", ["devices=4"], {"devices": ("4",)}),
    (
        "a cluster",
        ["cluster.coordinator=10.0.0.1:7000", "cluster.processes=4", "cluster.timeout_s=30"],
        {"cluster.coordinator": ("10.0.0.1:7000",), "cluster.processes": ("4",)},
    ),
]

ENVIRONMENT_REFUSED: list[tuple[str, dict[str, str]]] = [
    ("picks a safety pack", {"CORE_SAFETY_PACK": "mine"}),
    ("picks a safety folder", {"CORE_SAFETY_PACK_PATH": "/tmp"}),
    ("picks it in small letters", {"core_safety_pack": "mine"}),
    ("empty", {"CORE_SAFETY_PACK": ""}),
    ("weakens Hydra's target policy", {"HYDRA_INSTANTIATE_ALLOWLIST_OVERRIDE": "*"}),
    ("renames Hydra's main module", {"HYDRA_MAIN_MODULE": "evil"}),
    ("fast math on the CPU", {"XLA_FLAGS": "--xla_cpu_enable_fast_math=true"}),
    ("fast math, short", {"XLA_FLAGS": "--xla_force_host_platform_device_count=2 --xla_cpu_enable_fast_math"}),
    ("NaN not honoured", {"XLA_FLAGS": "--xla_cpu_fast_math_honor_nans=false"}),
    ("fast min and max on the GPU", {"XLA_FLAGS": "--xla_gpu_enable_fast_min_max=1"}),
]

ENVIRONMENT_ACCEPTED: list[tuple[str, dict[str, str]]] = [
    ("nothing", {}),
    ("HYDRA_FULL_ERROR", {"HYDRA_FULL_ERROR": "1"}),
    ("EQX_ON_ERROR", {"EQX_ON_ERROR": "nan"}),
    ("fast math switched off", {"XLA_FLAGS": "--xla_cpu_enable_fast_math=false"}),
    ("NaN honoured", {"XLA_FLAGS": "--xla_cpu_fast_math_honor_nans=true"}),
    ("fake devices", {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}),
]
