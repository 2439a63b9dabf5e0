"""Notices of copyright are taken from what a part is made of, and leave nothing behind in the guest."""

import json

from tools.build import notices, stack


def test_the_notices_of_debians_packages_leave_the_image(tmp_path):
    folder = tmp_path / notices.DEBIAN
    for name in ("zlib1g", "bash", "linked"):
        (folder / name).mkdir(parents=True)
    (folder / "zlib1g" / "copyright").write_text("zlib's notice\n")
    (folder / "bash" / "copyright").write_text("GPL-3\n")
    (folder / "bash" / "changelog").write_text("not a notice")
    (folder / "zlib1g-dev").symlink_to("zlib1g")
    (folder / "linked" / "copyright").symlink_to("/etc/passwd")
    assert notices.take_from_debian(tmp_path) == "==== bash\n\nGPL-3\n\n==== zlib1g\n\nzlib's notice\n"
    assert not list(folder.iterdir())


def test_the_licences_of_the_libraries_that_cargo_compiled_are_gathered(tmp_path):
    said = ["   Compiling libc v0.2.1"]
    for folder, package, files in (
        ("libc-0.2.1", "registry+https://example.org#libc@0.2.1", ("LICENSE-MIT", "LICENSE-APACHE", "README.md")),
        ("scps-tp", "path+file:///x#scps-tp@0.2.0", ("LICENSE",)),
    ):
        (tmp_path / folder).mkdir()
        for file in files:
            (tmp_path / folder / file).write_text(f"{file} of {folder}")
        message = {"package_id": package, "manifest_path": str(tmp_path / folder / "Cargo.toml")}
        said += [json.dumps({"reason": "compiler-artifact"} | message, separators=(",", ":"))] * 2
    found = notices.of_crates(stack.libraries("\n".join(said)))
    assert found == "==== libc-0.2.1\n\nLICENSE-APACHE of libc-0.2.1\n\n==== libc-0.2.1\n\nLICENSE-MIT of libc-0.2.1\n"
