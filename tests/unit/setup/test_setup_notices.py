"""Notices of copyright are taken from what a part is made of, and leave nothing behind in the guest."""

import json

from tools.build import notices, stack


def test_the_notices_of_debians_packages_leave_the_image(tmp_path):
    folder = tmp_path / notices.DEBIAN
    for name, text in (("zlib1g", "zlib's notice\n"), ("bash", "GPL-3\n")):
        (folder / name).mkdir(parents=True)
        (folder / name / "copyright").write_text(text)
    (folder / "bash" / "changelog").write_text("not a notice")
    (folder / "empty").mkdir()
    (folder / "zlib1g-dev").symlink_to("zlib1g")
    (folder / "linked").mkdir()
    (folder / "linked" / "copyright").symlink_to("/etc/passwd")
    assert notices.take_from_debian(tmp_path) == "==== bash\n\nGPL-3\n\n==== zlib1g\n\nzlib's notice\n"
    assert not list(folder.iterdir())


def test_the_licences_of_the_libraries_that_cargo_compiled_are_gathered(tmp_path):
    for name, files in (("libc-0.2.1", ("LICENSE-MIT", "LICENSE-APACHE", "README.md")), ("scps-tp", ("LICENSE",))):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text(f"{file} of {name}")
    crates = {"registry+https://example.org#libc@0.2.1": "libc-0.2.1", "path+file:///x#scps-tp@0.2.0": "scps-tp"}
    libc, own = (
        {"reason": "compiler-artifact", "package_id": name, "manifest_path": str(tmp_path / folder / "Cargo.toml")}
        for name, folder in crates.items()
    )
    messages = (libc, own, {"reason": "build-finished", "success": True}, libc)
    lines = [json.dumps(message, separators=(",", ":")) for message in messages]
    found = notices.of_crates(stack.libraries("\n".join(["   Compiling libc v0.2.1", *lines])))
    assert found == "==== libc-0.2.1\n\nLICENSE-APACHE of libc-0.2.1\n\n==== libc-0.2.1\n\nLICENSE-MIT of libc-0.2.1\n"
