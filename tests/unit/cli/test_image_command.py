"""`scpslab image`: what it says to somebody who has no source, or names another image."""

from __future__ import annotations


def test_without_a_source_it_says_where_it_is_and_under_which_terms(scpslab, monkeypatch):
    monkeypatch.delenv("SCPSLAB_RI_SOURCE", raising=False)
    code, _out, err = scpslab("image", "scps-ri")
    assert code == 2
    assert "found neither --source nor SCPSLAB_RI_SOURCE" in err
    assert "qiuchengxuan/SCPS_Project" in err
    assert "MITRE" in err


def test_the_folder_of_the_variable_is_taken(scpslab, monkeypatch, tmp_path):
    monkeypatch.setenv("SCPSLAB_RI_SOURCE", str(tmp_path))
    code, _out, err = scpslab("image", "scps-ri")
    assert code == 2
    assert f"{tmp_path}: found no folder FP" in err


def test_another_image_is_refused(scpslab):
    code, _out, err = scpslab("image", "tcp-host")
    assert code == 2
    assert 'image: found "tcp-host"; expected scps-ri.' in err
