"""Flip the pack's file between good and gutted while thousands of loads run: none may see a gutted pack."""

import json
import multiprocessing
import os
from multiprocessing.synchronize import Event
from pathlib import Path

from packs.errors import SafetyPackError
from packs.safety import pinned
from packs.safety.loader import REQUIRED_BOUNDARIES, load_folder
from tests.attacks.workspace import SAFETY, SAFETY_ID, resealed

LOADS = 6000


def _gutted() -> bytes:
    pack = json.loads(SAFETY.pack)
    pack["boundary_ids"] = pack["boundary_ids"][:1]
    pack["boundary_descriptions"] = {name: pack["boundary_descriptions"][name] for name in pack["boundary_ids"]}
    return resealed(pack, SAFETY).pack


def _flip(folder: Path, stop: Event) -> None:
    """Put good and gutted bytes in the pack's place in turn: by rename, by rewriting in place, and by a link."""
    target, turn = folder / SAFETY.pack_name, 0
    # Padding keeps the sizes equal, so that a torn read is not caught by its length alone.
    gutted = _gutted()
    gutted += b" " * (len(SAFETY.pack) - len(gutted))
    while not stop.is_set():
        for data in (gutted, SAFETY.pack):
            turn += 1
            if turn % 3 == 0:
                with open(target, "r+b") as stream:
                    stream.write(data)
                    stream.truncate()
                continue
            draft = folder / f"draft{turn}.tmp"
            draft.write_bytes(data)
            if turn % 5 == 0:
                link = folder / f"link{turn}.tmp"
                link.symlink_to(draft.name)
                os.replace(link, target)
                os.replace(draft, target)
            else:
                os.replace(draft, target)


def test_no_load_sees_a_gutted_pack(tmp_path: Path) -> None:
    SAFETY.write(tmp_path)
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    flipper = context.Process(target=_flip, args=(tmp_path, stop))
    flipper.start()
    loaded = refused = 0
    try:
        while loaded + refused < LOADS or not (loaded and refused):
            try:
                pack = load_folder(tmp_path, pin=(SAFETY_ID, pinned.PACK_SHA256))
            except SafetyPackError:
                refused += 1
            else:
                loaded += 1
                assert pack.boundary_ids == REQUIRED_BOUNDARIES
                assert pack.sha256 == pinned.PACK_SHA256
    finally:
        stop.set()
        flipper.join(10)
    # Both happened, so the race was a race.
    assert loaded > 0
    assert refused > 0


def test_the_same_race_is_lost_by_a_loader_that_reads_twice(tmp_path: Path) -> None:
    """The race is real: comparing the pin on one read and parsing a second read does see the gutted pack."""
    SAFETY.write(tmp_path)
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    flipper = context.Process(target=_flip, args=(tmp_path, stop))
    flipper.start()
    path, fooled = tmp_path / SAFETY.pack_name, False
    try:
        for _ in range(200_000):
            try:
                fooled = path.read_bytes() == SAFETY.pack and path.read_bytes() != SAFETY.pack
            except OSError:
                continue  # Some file systems show no file for an instant while another is renamed onto its name.
            if fooled:
                break
    finally:
        stop.set()
        flipper.join(10)
    assert fooled
