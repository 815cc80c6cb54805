"""The builder: byte-identical rebuilds, errors that name table and line, users' relation tables and word vectors."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.language.build import build_from_embedding, build_from_relations, build_from_tables
from engine.language.compile import compile_vocabulary
from engine.language.projection import project, read_word2vec
from packs.errors import LanguagePackError
from packs.language.authoring import spread_direction
from packs.language.loader import load_language_folder
from scripts.build_language_pack import main
from tests.language.tiny import write_tables

ROOT = Path(__file__).resolve().parents[2]


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder by their relative path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run_builder(*arguments: str | Path) -> None:
    """Run the script in a process of its own, with another hash seed and locale."""
    subprocess.run(
        [sys.executable, ROOT / "scripts" / "build_language_pack.py", *arguments],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "77", "LC_ALL": "C", "PYTHONPATH": str(ROOT)},
    )


def test_a_rebuild_is_byte_identical(tables_folder: Path, built_folder: Path, tmp_path: Path) -> None:
    build_from_tables(tables_folder, tmp_path / "tiny")
    assert contents(tmp_path / "tiny") == contents(built_folder)


def test_a_rebuild_in_another_process_is_byte_identical(
    tables_folder: Path, built_folder: Path, tmp_path: Path
) -> None:
    run_builder(tables_folder, "--out", tmp_path / "tiny")
    assert contents(tmp_path / "tiny") == contents(built_folder)


def test_sentences_become_a_source_and_spans_point_into_it(built_folder: Path) -> None:
    text = (built_folder / "sources" / "book_two.md").read_text("utf-8")
    assert text.startswith("# book_two\n\nA rose is a part of the garden.\n\nEvery rose needs water.\n")


def test_an_authored_source_is_kept_as_it_is(tmp_path: Path) -> None:
    folder = write_tables(tmp_path / "tiny")
    (folder / "sources").mkdir()
    made = build_from_tables(folder, tmp_path / "first" / "tiny").sources["book_one"]
    authored = "# Book one, by hand\n\n" + made.split("\n\n", 1)[1].replace("\n\n", " \u2014 ")
    (folder / "sources" / "book_one.md").write_text(authored, "utf-8")
    pack = build_from_tables(folder, tmp_path / "second" / "tiny")
    assert pack.sources["book_one"] == authored
    assert pack.cited_text(pack.relations[1].citation) == "The rosary is a part of the garden where roses grow."


Change = Callable[[str], str]
FAULTS: list[tuple[str, Change, str]] = [
    (
        "relations.tsv",
        lambda t: t.replace("A rose is", "A lily is", 1),
        "line 2: the sentence holds no form of the head rose",
    ),
    (
        "relations.tsv",
        lambda t: t.replace("rose\tneeds\twater", "lily\tneeds\twater"),
        "line 4: head lily is not in lexicon.tsv",
    ),
    ("relations.tsv", lambda t: t.replace("book_two", "Book Two", 1), "line 2: source 'Book Two' is not a file stem"),
    ("relations.tsv", lambda t: t.replace("rose\tneeds\tsoil", "rose\tneeds"), "line 5: tail_"),
    ("relations.tsv", lambda t: t.replace("head\t", "subject\t", 1), "without the column head"),
    ("relations.tsv", lambda t: t + "x\ty\tz\tv\tw\tu\n", "6 cells for 5 columns"),
    ("relations.tsv", lambda t: t + t.splitlines()[1] + "\n", "the triple stands twice"),
    ("lexicon.tsv", lambda t: t + "rose\tnoun\tagain\tgarden\t\n", "duplicate lemma rose"),
    ("lexicon.tsv", lambda t: t.replace("noun", "thing", 1), "pos 'thing' is none of"),
    ("lexicon.tsv", lambda t: t.replace("storm\t", "sto\u202erm\t", 1), "line 13: lemma holds a bidirectional control"),
    ("lexicon.tsv", lambda t: "", "lexicon.tsv: empty"),
    ("lexicon.tsv", lambda t: t.replace("lemma\tpos", "lemma\tlemma"), "without the column pos"),
    ("relation_types.tsv", lambda t: t.replace("\t0\t", "\tyes\t", 1), "symmetric is 'yes', not 0 or 1"),
    ("operators.tsv", lambda t: t.replace("\tstem\t", "\troot\t"), "is not stem, inflection or affix"),
    ("manifest.tsv", lambda t: t.replace("role\t", "rule\t"), "manifest.tsv: without the key role"),
    ("manifest.tsv", lambda t: t + "colour\tred\n", "unknown key 'colour'"),
    (
        "alignment.tsv",
        lambda t: "lemma\tlanguage\tother\tstrength\nrose\tnowhere\tx\t1\n",
        "the pack nowhere is not built yet",
    ),
]


@pytest.mark.parametrize(("table", "change", "message"), FAULTS, ids=[fault[2] for fault in FAULTS])
def test_faults_in_the_tables_are_named_and_nothing_is_written(
    tables_folder: Path, tmp_path: Path, table: str, change: Change, message: str
) -> None:
    folder = shutil.copytree(tables_folder, tmp_path / "tables")
    path = folder / table
    path.write_text(change(path.read_text("utf-8") if path.exists() else ""), "utf-8")
    with pytest.raises(LanguagePackError) as caught:
        build_from_tables(folder, tmp_path / "tiny")
    if message.endswith("tail_"):
        assert "line 5" in str(caught.value)
    else:
        assert message in str(caught.value)
    assert not (tmp_path / "tiny").exists()


def test_a_folder_that_is_no_pack_is_left_alone(tables_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(LanguagePackError, match="no language pack; nothing is written"):
        build_from_tables(tables_folder, tmp_path / "thesis")
    assert contents(tmp_path / "thesis") == {"chapter.txt": b"years of work"}


@pytest.mark.parametrize("name", ["Tiny", "identity", "safety", "my-pack", "1st"])
def test_a_folder_name_that_is_no_pack_id_is_refused(tables_folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(LanguagePackError, match="pack id"):
        build_from_tables(tables_folder, tmp_path / name)


# --- a user's relation table ---

CSV = (
    'head,relation,tail,sentence\nlion,eats,zebra,\nzebra,eats,grass,"Zebras, like the zebra here, eat grass."\n'
    + "".join(
        f"{a},lives near,{b},\n"
        for a, b in [("lion", "river"), ("zebra", "river"), ("river", "grass"), ("grass", "soil")]
    )
)


def test_a_csv_of_relations_becomes_a_pack(tmp_path: Path) -> None:
    (tmp_path / "animals.csv").write_text(CSV, "utf-8")
    pack = build_from_relations(tmp_path / "animals.csv", tmp_path / "animals")
    assert pack.lemmas == ("lion", "zebra", "grass", "river", "soil")
    assert [kind.relation for kind in pack.relation_types] == ["eats", "lives_near"]
    assert pack.cited_text(pack.relations[0].citation) == "lion eats zebra."
    assert pack.cited_text(pack.relations[1].citation) == "Zebras, like the zebra here, eat grass."
    assert compile_vocabulary(pack).size == 5


def test_a_tsv_of_relations_in_another_script_becomes_a_pack(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("head\trelation\ttail\nאור\topposes\tחושך\nאור\tcauses\tחום\n", "utf-8")
    pack = build_from_relations(tmp_path / "words.tsv", tmp_path / "light")
    assert (pack.manifest.script, pack.manifest.direction) == ("Hebrew", "rtl")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("head,relation,tail\n", "no relation"),
        ("a,b,c\nx,y,z\n", "without the column head"),
        ("head,relation,tail\nx,y,x\n", "related to itself"),
        ("head,relation,tail\nx,!!,y\n", "gives no identifier"),
        ("head,relation,tail\nx,is a,y\nx,is-a,z\n", "same identifier"),
        ('head,relation,tail\nx,"is,y\n', "not CSV"),
        ("head,relation,tail\nx,is,\n", "tail is empty"),
        ("head,relation,tail,sentence\nx,is,y,Nothing of it.\n", "no form of the head x"),
        ("head,relation,tail\nx,is,y\nX,is,z\n", "duplicate lemma"),
    ],
)
def test_faults_in_a_relation_table_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "r.csv").write_text(text, "utf-8")
    with pytest.raises(LanguagePackError, match=message):
        build_from_relations(tmp_path / "r.csv", tmp_path / "user")
    assert not (tmp_path / "user").exists()


# --- word vectors ---

ROWS = ["rose 1 0 0 0.5", "new york 0 1 0 0.25 ", "lily 0 0 1 -1\t", "24 7 -1 0 2 1"]


def vectors(tmp_path: Path, lines: list[str]) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_bytes("\n".join(lines).encode() + b"\n")
    return path


@pytest.mark.parametrize("header", [[], ["4 4"], ["4 4 "]])
def test_tokens_with_spaces_missing_headers_and_trailing_spaces_are_read(tmp_path: Path, header: list[str]) -> None:
    embedding = read_word2vec(vectors(tmp_path, header + ROWS))
    assert embedding.words == ("rose", "new york", "lily", "24 7")
    np.testing.assert_array_equal(embedding.vectors[1], [0, 1, 0, 0.25])
    np.testing.assert_array_equal(embedding.vectors[3], [-1, 0, 2, 1])


def test_rows_that_are_no_words_are_skipped_and_counted(tmp_path: Path) -> None:
    lines = [
        *ROWS,
        "Rose 1 1 1 1",
        ", 0 0 0 1",
        "</s> 0 0 0 0",
        "a\u200bb 1 2 3 4",
        "e\u0301 1 2 3 4",
        "x" * 200 + " 1 2 3 4",
    ]
    assert read_word2vec(vectors(tmp_path, lines)).skipped == {
        "same look-up key as an earlier row": 1,
        "no letter or digit": 1,
        "control, invisible or unnormalised characters": 2,
        "longer than a word may be": 1,
    }


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""], "holds no vector"),
        (["4 4"], "rows are not|no vector"),
        (["rose", "lily"], "rows are not"),
        ([*ROWS, "tulip 1 2"], "line 5: 2 values, where other rows have 4"),
        ([*ROWS, "tulip 1 2 x 4"], "line 5"),
        ([*ROWS, "tulip 1 2 nan 4"], "line 5: a value is not finite"),
        ([*ROWS, "tulip 1 2 1e999 4"], "line 5: a value is not finite"),
        ([", 1 2 3 4"], "no row's token is a word"),
    ],
)
def test_faults_in_word_vectors_are_named(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(LanguagePackError, match=message):
        build_from_embedding(vectors(tmp_path, lines), tmp_path / "user")


def test_projection_keeps_the_leading_directions_at_any_scale() -> None:
    random = np.random.default_rng(3)
    base = random.normal(size=(40, 9)) * np.array([9, 7, 5, 3, 2, 1.5, 0.1, 0.1, 0.1])
    projected = project(base)
    for scale in (1e-200, 1e200):
        np.testing.assert_allclose(project(base * scale), projected, rtol=1e-9, atol=1e-12)
    spread = projected.std(axis=0)
    assert (np.diff(spread) <= 0).all()
    kept = np.linalg.norm(projected) * np.abs(base).max() / np.linalg.norm(base - base.mean(axis=0))
    assert kept > 0.99


def test_vectors_become_a_pack_whose_words_are_apart(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    lines = [f"w{number} " + " ".join(f"{v:.4f}" for v in random.normal(size=8)) for number in range(200)]
    lines += [f"twin{number} " + " ".join(["0.5"] * 8) for number in range(20)]
    pack, skipped = build_from_embedding(vectors(tmp_path, lines), tmp_path / "user")
    assert skipped == {}
    points = np.asarray(compile_vocabulary(pack).points)
    assert len(np.unique(points, axis=0)) == 220


@pytest.mark.slow
def test_fifty_thousand_rows_are_built(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    table = random.normal(size=(50_000, 10)).round(4)
    lines = [f"word{number} " + " ".join(map(str, row)) for number, row in enumerate(table.tolist())]
    run_builder("--embedding", vectors(tmp_path, lines), "--out", tmp_path / "big")
    pack = load_language_folder(tmp_path / "big", require_seal=False)
    points = np.asarray(compile_vocabulary(pack).points)
    assert len(np.unique(points, axis=0)) == len(pack.lexicon) == 50_000


# --- the command ---


def test_the_command_reports_counts(tables_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tables_folder), "--out", str(tmp_path / "tiny")]) == 0
    assert "tiny: 12 lexemes, 16 relations of 3 types" in capsys.readouterr().out


def test_the_command_prints_one_line_for_a_refusal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nowhere"), "--out", str(tmp_path / "tiny")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1


def test_directions_are_unit_apart_and_do_not_move_when_more_are_added() -> None:
    directions = np.array([spread_direction(number) for number in range(64)])
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0, atol=1e-15)
    cosines = directions @ directions.T - 2 * np.eye(64)
    assert np.degrees(np.arccos(cosines.max())) > 5
