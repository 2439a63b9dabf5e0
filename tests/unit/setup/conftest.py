"""Parts that are built in no time."""

import pytest

from scpslab.setup import images
from scpslab.setup.job import Job

PRODUCTS = {"guest": "guest.erofs"}


@pytest.fixture
def recipes(tmp_path, monkeypatch):
    """A recipe folder, a cache folder and one part that copies its recipe."""
    for name in ("kernel", "guest", "tools"):
        (tmp_path / "recipes" / name).mkdir(parents=True)
        (tmp_path / "recipes" / name / "list").write_text(name)
    monkeypatch.setattr(images, "PROJECT", tmp_path / "recipes")
    monkeypatch.setenv("SCPSLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(images, "NEEDED_BYTES", 1)
    monkeypatch.setattr(images, "ROOM_TO_RUN_BYTES", 1)
    built: list[str] = []

    def build(job: Job) -> None:
        with job.step("copy"):
            built.append(job.title)
            if job.title == "tools":
                job.target.mkdir()
                (job.target / "init").write_text("init")
                (job.target / "init").chmod(0o755)
            else:
                job.target.write_text((job.recipe / "list").read_text())

    parts = tuple(
        images.Built(name, name, name, build, PRODUCTS.get(name, "product"), images.files_of)
        for name in ("tools", "guest", "kernel")
    )
    monkeypatch.setattr(images, "PARTS", parts)
    return tmp_path, built, parts
