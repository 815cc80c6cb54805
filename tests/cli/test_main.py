"""The `core` command: exit codes, one line for a refusal, no heavy import, and an unwritable stdout."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.base.command import one_line, run_command
from engine.base.errors import ConfigError, UsageError
from packs.errors import SafetyOverrideError

CORE = [sys.executable, "-m", "engine.cli"]


def core(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*CORE, *arguments], capture_output=True, text=True, timeout=120, check=False, **options)  # type: ignore[call-overload]


def fail_with(error: BaseException) -> int:
    def command() -> int:
        raise error

    return run_command("core", command)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ConfigError("seed=x: expected a number"), 1, "core: ConfigError: seed=x: expected a number\n"),
        (SafetyOverrideError("refused"), 1, "core: SafetyOverrideError: refused\n"),
        (UsageError("unknown flag --x"), 2, "core: unknown flag --x\n"),
        (KeyboardInterrupt(), 130, "core: interrupted\n"),
        (
            PermissionError(13, "Permission denied", "/x"),
            1,
            "core: PermissionError: [Errno 13] Permission denied: '/x'\n",
        ),
        (ConfigError("two\nlines \x1b[31m\u202e"), 1, "core: ConfigError: two\\nlines \\x1b[31m\\u202e\n"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fail_with(error) == code
    captured = capsys.readouterr()
    assert captured.err == line
    assert captured.out == ""


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        fail_with(ZeroDivisionError())


def test_the_handler_of_sigterm_is_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert run_command("core", lambda: 0) == 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_is_answered_like_ctrl_c(capsys: pytest.CaptureFixture[str]) -> None:
    def wait() -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
        return 0

    assert run_command("core", wait) == 130


def test_one_line_keeps_what_a_reader_needs() -> None:
    assert one_line("café מה\t\n") == "café מה\\t\\n"


def test_help_lists_the_commands_and_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom engine.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "heavy = {'jax', 'numpy', 'hydra', 'omegaconf', 'pyarrow', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    for command in ("sweep", "verify", "report", "packs"):
        assert command in result.stdout


def test_a_refused_override_imports_no_hydra_and_no_jax() -> None:
    code = (
        "import sys\nfrom engine.cli import main\n"
        "assert main(['sweep', '+safety=x']) == 1\n"
        "assert not {'jax', 'hydra', 'omegaconf'} & set(sys.modules)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["packs"], ["verify"], ["--frobnicate"], ["--hel"]])
def test_a_malformed_command_line_is_a_usage_error(arguments: list[str]) -> None:
    result = core(*arguments)
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_a_full_device_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*CORE, "packs", "list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1


def test_a_closed_stdout_is_one_line() -> None:
    result = subprocess.run(
        f"exec {' '.join(CORE)} packs list >&-", shell=True, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
    assert result.returncode == 1
    assert len(result.stderr.splitlines()) == 1


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([*CORE, "packs", "list"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=60)
    os.close(writer)
    assert result.returncode == 1
    assert result.stderr == ""


def test_a_folder_named_packs_in_the_working_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "packs").mkdir()
    (tmp_path / "packs" / "__init__.py").write_text("raise SystemExit('planted code ran')\n")
    for module in ("engine.cli", "experiments.sweep"):
        arguments = ["sweep"] if module == "engine.cli" else []
        result = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert result.returncode == 1
        assert "SafetyOverrideError: packs comes from" in result.stderr
        assert "planted code ran" not in result.stderr


def test_the_command_stays_callable_after_it_was_called() -> None:
    """A submodule named like the function would replace it once it is imported."""
    import engine.cli

    assert engine.cli.main(["packs", "list"]) == 0
    assert callable(engine.cli.main)
    assert engine.cli.main(["packs", "list"]) == 0
