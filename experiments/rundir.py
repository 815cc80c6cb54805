"""Run folders: made by us, unique, written through a temporary path and a rename, sealed by a manifest of digests.

RUN/plan.json          the checked command line and every planned job
RUN/jobs/N/            one job: config.yaml, results.parquet, status.json, job.log
RUN/results.parquet    the rows of all jobs, with results.csv, summary.json, environment.json, figures/, status.json
RUN/manifest.json      SHA-256 and size of every other file, written last
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.base.errors import ConfigError, RecordError, RunWriteError
from packs import strict_json
from packs.errors import PackFormatError

MANIFEST = "manifest.json"
PLAN = "plan.json"
STATUS = "status.json"
RESULTS = "results.parquet"
LOCK = ".lock"
REPORT = "report.html"
LAUNCHER = ".launcher"
"""What a launcher leaves in a run folder (pickled jobs, its logs): no part of the record, and no manifest lists it."""

LOG = logging.getLogger("corefield.sweep")
SCHEMA_VERSION = "1.0.0"
DEFAULT_PARENT = "runs"
MAX_JSON_BYTES = 64 * 1024 * 1024


def create_run_folder(requested: str | None, moment: float | None = None) -> Path:
    """Make and return a new run folder: `requested`, or one named after the time (UTC) below `runs/`.

    Two runs in one second get two folders, since `mkdir` is atomic. Raises `ConfigError` where the requested path is
    a file or a folder that holds anything.
    """
    if requested is not None:
        return _claim(Path(requested).absolute())
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(moment))
    parent = _made(Path(DEFAULT_PARENT).absolute())
    for attempt in range(1, 10_000):
        folder = parent / (stamp if attempt == 1 else f"{stamp}-{attempt}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise ConfigError(f"{parent} holds 10,000 runs of this second already")


def _claim(folder: Path) -> Path:
    refuse_occupied(folder)
    return _made(folder)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunWriteError(f"{folder} cannot be made ({error.strerror}); choose another run folder") from error
    return folder


def refuse_occupied(folder: Path) -> None:
    """Raise `ConfigError` where `folder` is something else than absent or an empty folder."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ConfigError(f"{folder} exists and is no folder; choose another run folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(f"{folder} is not empty; choose another run folder, or continue it with resume={folder}")


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a reader sees the old file or the new one, never a part of either.

    Raises `RunWriteError` where the file system refuses: full, read-only, gone.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise RunWriteError(
            f"{path} cannot be written ({error.strerror}); what was written before is whole: "
            "mend that and continue with core sweep resume=RUN_DIR"
        ) from error
    finally:
        _remove(temporary)


def _remove(temporary: Path) -> None:
    try:
        temporary.unlink(missing_ok=True)
    except OSError as error:
        # A read-only or lost file system: what matters has been said.
        LOG.debug("%s was not removed: %s", temporary, error)


def write_json(path: Path, document: object) -> None:
    """Write `document` as strict, indented JSON with sorted keys (see `write_bytes`)."""
    text = json.dumps(document, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False)
    write_bytes(path, (text + "\n").encode("utf-8"))


def read_json(path: Path) -> dict[str, Any]:
    """Return the strict JSON object in `path`. Raises `RecordError` where it is absent, too large or malformed."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise RecordError(f"{path} is larger than {MAX_JSON_BYTES} bytes")
        return strict_json.loads(path.read_bytes(), source=str(path))
    except (OSError, PackFormatError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def finished(folder: Path) -> dict[str, Any] | None:
    """Return a job's status where it says that the job is done and its table is the one it names, else None."""
    try:
        status = read_json(folder / STATUS)
        is_done = status.get("state") == "done" and status.get("results_sha256") == file_sha256(folder / RESULTS)
    except (RecordError, OSError):
        return None
    return status if is_done else None


def listed_files(folder: Path) -> Iterator[str]:
    """Yield every file of a run that a manifest lists, as a sorted relative POSIX path; leftovers are not listed."""
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        is_leftover = path.name.startswith(".") and path.name.endswith(".tmp")
        if relative.partition("/")[0] == LAUNCHER:
            continue
        if path.is_file() and relative not in (MANIFEST, LOCK, REPORT) and not is_leftover:
            yield relative


def write_manifest(folder: Path) -> None:
    """Write the manifest over every file of the run; it is the last file written."""
    files = {
        name: {"sha256": file_sha256(folder / name), "bytes": (folder / name).stat().st_size}
        for name in listed_files(folder)
    }
    write_json(folder / MANIFEST, {"schema_version": SCHEMA_VERSION, "files": files})


def check_manifest(folder: Path) -> list[str]:
    """Return what the manifest and the folder disagree on, one line each; an empty list is agreement."""
    files = read_json(folder / MANIFEST).get("files")
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise RecordError(f"{folder / MANIFEST} lists no files")
    present = set(listed_files(folder))
    problems = [f"{name}: in the manifest, not in the folder" for name in sorted(set(files) - present)]
    problems += [f"{name}: in the folder, not in the manifest" for name in sorted(present - set(files))]
    for name in sorted(present & set(files)):
        if file_sha256(folder / name) != files[name].get("sha256"):
            problems.append(f"{name}: its SHA-256 is not the one in the manifest")
    return problems
