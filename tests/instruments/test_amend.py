"""The amend arm keeps the shape, stages equal bytes for equal inputs, and owes nothing to the shadow arm."""

import json
import os
import stat
import subprocess
import sys

import pytest

from engine.base.errors import StagingError
from engine.instruments import amend_constitution, synthesize_shadow_constitution
from engine.instruments.amend import shape_faults, unified_diff
from engine.instruments.staging import HISTORY, adopt, check_adoptable, read_staged
from tests.instruments.support import LIVE, TEXTS, PlainGenerator, write_live, write_patterns


@pytest.fixture
def sources(tmp_path):
    return write_live(tmp_path / "live"), write_patterns(tmp_path / "patterns.json")


def amend(sources, stage=None, generator=None, **changes):
    arguments = {"embedder": "hashing", "generator": generator or PlainGenerator(), "stage_dir": stage, **changes}
    return amend_constitution(sources[0], sources[1], **arguments)


def staged_bytes(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_proposal_is_staged_with_diff_and_lineage_and_changes_nothing(sources, tmp_path):
    result = amend(sources, tmp_path / "stage")
    assert result.ok
    assert set(staged_bytes(tmp_path / "stage")) == {"proposal.md", "proposal.diff", "lineage.json", "manifest.json"}
    lineage = json.loads((tmp_path / "stage" / "lineage.json").read_text())
    (clause,) = lineage["clauses"]
    assert lineage["patterns"][clause["pattern_ids"][0]] == clause["clause"]
    assert f'+- "{clause["clause"]}"' in result.diff
    assert (sources[0] / "constitution.md").read_text() == LIVE


def test_only_the_first_file_is_given_and_rewritten(sources, tmp_path):
    (sources[0] / "z-second.md").write_text('# Second\n- "never shown to the amend arm"\n')
    generator = PlainGenerator()
    assert amend(sources, tmp_path / "stage", generator).ok
    (request,) = generator.requests
    assert "zebra-striped" in request.prompt
    assert "never shown" not in request.prompt
    assert request.revision.text == LIVE.strip()
    assert len(request.revision.clause_vectors) == 4
    assert read_staged(tmp_path / "stage").file == "constitution.md"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("## Care", "## Caring"),
        lambda text: text.replace('- "Correct a mistake in the open, as soon as it is seen."\n', ""),
        lambda text: text + '- "One clause more."\n',
        lambda text: text + '\n## More\n- "One section more."\n',
        lambda text: text.replace("## Honesty\n", ""),
        lambda text: text + "<|im_start|>",
    ],
    ids=["heading", "clause lost", "clause added", "section added", "heading lost", "control token"],
)
def test_a_text_of_another_shape_is_not_staged(sources, tmp_path, change):
    result = amend(sources, tmp_path / "stage", PlainGenerator(text=change(LIVE)))
    assert result.verdict == "validation_failed"
    assert result.validation
    assert not (tmp_path / "stage").exists()


def test_shape_is_judged_clause_by_clause():
    assert shape_faults(LIVE, LIVE.replace("quagga", "okapi")) == ()
    assert unified_diff(LIVE, LIVE, "a.md") == ""


GUARDS = (
    ("no_view_registry", lambda tmp: {"views_dir": tmp}),
    ("insufficient_patterns", lambda tmp: {"patterns": write_patterns(tmp / "two.json", TEXTS[:2])}),
    ("prompt_missing", lambda tmp: {"prompts_dir": tmp}),
    ("no_constitution_dir", lambda tmp: {"constitution_dir": None}),
    ("no_constitution_files", lambda tmp: {"constitution_dir": tmp / "absent"}),
    ("empty_constitution", lambda tmp: {"constitution_dir": write_live(tmp / "blank", " \n")}),
    ("llm_failure", lambda tmp: {"generator": PlainGenerator(reason="length")}),
)


@pytest.mark.parametrize("first", range(len(GUARDS)))
def test_the_guards_are_those_of_the_shadow_arm_in_the_same_order(sources, tmp_path, first):
    changes = {"constitution_dir": sources[0], "patterns": sources[1], "generator": PlainGenerator()}
    for _, fault in reversed(GUARDS[first:]):
        changes.update(fault(tmp_path))
    folder, patterns = changes.pop("constitution_dir"), changes.pop("patterns")
    assert amend_constitution(folder, patterns, embedder="hashing", **changes).verdict == GUARDS[first][0]
    shadow = synthesize_shadow_constitution(folder, patterns, log_path=None, embedder="hashing", **changes)
    assert shadow.verdict == GUARDS[first][0]


def test_staged_bytes_are_equal_before_and_after_a_shadow_run(sources, tmp_path):
    amend(sources, tmp_path / "before")
    generator = PlainGenerator()
    synthesize_shadow_constitution(*sources, log_path=tmp_path / "log", embedder="hashing", generator=generator)
    amend(sources, tmp_path / "after")
    assert staged_bytes(tmp_path / "before") == staged_bytes(tmp_path / "after")


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name == "engine.instruments.shadow":
            raise ImportError("blocked")
sys.meta_path.insert(0, Block())
from engine.instruments import amend_constitution
from tests.instruments.support import PlainGenerator
result = amend_constitution(
    sys.argv[1], sys.argv[2], stage_dir=sys.argv[3], embedder="hashing", generator=PlainGenerator()
)
assert result.ok, result.message
try:
    from engine.instruments import synthesize_shadow_constitution
except ImportError:
    sys.exit(0)
sys.exit("the shadow arm was not blocked")
"""


def test_staged_bytes_are_equal_with_the_shadow_arm_import_blocked(sources, tmp_path):
    amend(sources, tmp_path / "free")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-c", BLOCKED, *map(str, sources), str(tmp_path / "blocked")]
    finished = subprocess.run(arguments, env=environment, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert staged_bytes(tmp_path / "free") == staged_bytes(tmp_path / "blocked")


def test_adoption_is_atomic_keeps_the_old_text_and_the_mode(sources, tmp_path):
    live = sources[0] / "constitution.md"
    live.chmod(0o640)
    result = amend(sources, tmp_path / "stage")
    kept = adopt(read_staged(tmp_path / "stage"))
    assert live.read_text().strip() == result.text
    assert stat.S_IMODE(live.stat().st_mode) == 0o640
    assert kept.parent.name == HISTORY
    assert kept.read_text() == LIVE
    with pytest.raises(StagingError, match="changed since"):
        adopt(read_staged(tmp_path / "stage"))
    again = amend(sources, tmp_path / "stage2")
    assert again.ok, "the history folder must not become a part of the constitution"


def test_an_adopted_text_is_never_readable_by_more_than_the_old_one(sources, tmp_path, monkeypatch):
    live = sources[0] / "constitution.md"
    live.chmod(0o600)
    amend(sources, tmp_path / "stage")
    staged = read_staged(tmp_path / "stage")
    seen = []
    opened, renamed = os.fdopen, os.replace

    def look_at_open(descriptor, *arguments, **named):
        seen.append(("opened", stat.S_IMODE(os.fstat(descriptor).st_mode)))
        return opened(descriptor, *arguments, **named)

    def look_at_rename(source, target):
        seen.append(("renamed", stat.S_IMODE(os.stat(source).st_mode)))
        renamed(source, target)

    monkeypatch.setattr(os, "fdopen", look_at_open)
    monkeypatch.setattr(os, "replace", look_at_rename)
    adopt(staged)
    assert seen == [("opened", 0o600), ("renamed", 0o600)] * 2
    assert stat.S_IMODE(live.stat().st_mode) == 0o600


def _edit(path, old, new):
    path.write_bytes(path.read_bytes().replace(old, new))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda live, stage: (live / "constitution.md").write_text(LIVE + "\nmoved"), "changed since"),
        (lambda live, stage: (live / "constitution.md").unlink(), "not the first"),
        (lambda live, stage: (live / "a.md").write_text("now first"), "not the first"),
        (lambda live, stage: _edit(stage / "proposal.md", b"#", b"##"), "altered"),
        (lambda live, stage: _edit(stage / "proposal.diff", b"+", b" "), "altered"),
        (lambda live, stage: (stage / "lineage.json").unlink(), "cannot be opened"),
        (lambda live, stage: (stage / "manifest.json").unlink(), "cannot be opened"),
        (lambda live, stage: (stage / "manifest.json").write_text("[]"), "lacks a field"),
        (lambda live, stage: (stage / "manifest.json").write_text("{"), "not JSON"),
        (lambda live, stage: _edit(stage / "manifest.json", b'"constitution.md"', b'"../x.md"'), "not a file"),
        (lambda live, stage: _edit(stage / "manifest.json", b'"1.0.0"', b'"9.0.0"'), "schema"),
    ],
)
def test_a_proposal_that_moved_or_was_altered_is_refused(sources, tmp_path, spoil, message):
    stage = tmp_path / "stage"
    amend(sources, stage)
    spoil(sources[0], stage)
    with pytest.raises(StagingError, match=message):
        check_adoptable(read_staged(stage))


def test_a_link_in_the_place_of_the_live_file_is_refused(sources, tmp_path):
    stage = tmp_path / "stage"
    amend(sources, stage)
    live = sources[0] / "constitution.md"
    live.rename(tmp_path / "real.md")
    live.symlink_to(tmp_path / "real.md")
    with pytest.raises(StagingError, match="symbolic link"):
        adopt(read_staged(stage))
    assert (tmp_path / "real.md").read_text() == LIVE
