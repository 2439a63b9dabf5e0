"""The image of the SCPS reference implementation: only the known source is built, the user's copy is left alone, and an edit that does not fit is an error."""

from __future__ import annotations

import pytest

from scpslab.errors import CapabilityError, UsageError
from scpslab.setup import reference

# Files of ours with the places that edits look for.
FILES = {
    "source/thread.c": "void\nthreadHandoffCPU(struct threads *t, Th_Status status)\n{ old }\n\nvoid\nthreadExit()\n{ kept }\n",
    "source/tp_handler.c": "  new_socket->np_rqts.nl_protocol = rqts->nl_protocol;\n",
    "FP/sfp.c": "int one;\n",
    "FP/libc.h": "extern struct cmd cmdtab[];\n",
    "apps/gateway.c": "int two;\n",
    "include/scps.h": "int three;\n",
}


@pytest.fixture
def source(tmp_path):
    """A folder that is laid out as the source is."""
    folder = tmp_path / "source-of-a-user"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_folder_that_is_no_source_is_refused_with_the_terms(tmp_path):
    (tmp_path / "source").mkdir()
    with pytest.raises(UsageError, match=r"found no folder FP, apps, include; expected the source.*1\.1\.146") as refused:
        reference.check_source(tmp_path)
    assert "MITRE" in str(refused.value)


def test_another_version_is_refused_with_both_hashes(source):
    with pytest.raises(UsageError) as refused:
        reference.check_source(source)
    assert reference.source_hash(source) in str(refused.value)
    assert reference.KNOWN_SOURCE in str(refused.value)


def test_the_known_source_is_taken(source, monkeypatch):
    monkeypatch.setattr(reference, "KNOWN_SOURCE", reference.source_hash(source))
    reference.check_source(source)


def test_the_hash_is_that_of_the_c_files_and_their_names(source):
    before = reference.source_hash(source)
    (source / "source" / "tp.o").write_text("compiled by the user")
    (source / "README").write_text("a note of the user's")
    assert reference.source_hash(source) == before

    (source / "source" / "thread.c").rename(source / "source" / "threads.c")
    renamed = reference.source_hash(source)
    (source / "include" / "scps.h").write_text("int four;\n")
    assert len({before, renamed, reference.source_hash(source)}) == 3


def test_edits_change_the_copy_and_nothing_of_the_users(source, tmp_path):
    reference.prepare(source, tmp_path / "copy")
    assert {name: (source / name).read_text() for name in FILES} == FILES
    assert (tmp_path / "copy/source/thread.c").read_text() == FILES["source/thread.c"].replace("void\nthreadH", "#if 0\nvoid\nthreadH").replace(
        "void\nthreadE", "#endif\nvoid\nthreadE"
    )
    assert "new_socket->nl_protocol_id = rqts->nl_protocol;" in (tmp_path / "copy/source/tp_handler.c").read_text()


@pytest.mark.parametrize("text", ["int nothing;\n", 2 * FILES["source/tp_handler.c"]])
def test_an_edit_without_its_one_place_is_an_error(source, tmp_path, text):
    (source / "source/tp_handler.c").write_text(text)
    with pytest.raises(CapabilityError, match=r"source/tp_handler\.c: found [02] places that .* matches; expected one"):
        reference.prepare(source, tmp_path / "copy")


def test_a_file_in_an_old_encoding_stays_as_it_is(source, tmp_path):
    (source / "source/thread.c").write_bytes(FILES["source/thread.c"].encode() + b"/* \xe9 */\n")
    reference.prepare(source, tmp_path / "copy")
    assert (tmp_path / "copy/source/thread.c").read_bytes().endswith(b"/* \xe9 */\n")
