"""The installed wheel does everything without the repository; `make wheel-check` adds the downloads."""

import sysconfig

import pytest
from wheel_check import install, use_commands


@pytest.mark.long
def test_from_a_sample_corpus_to_speech_where_the_repository_is_not(wheel, tmp_path):
    """The environment takes its dependencies, but not the repository, from that of the tests."""
    pytest.importorskip("espeakng_loader")
    python = install(wheel, tmp_path / "environment", "--no-index", "--no-deps")
    (site,) = (tmp_path / "environment").glob("lib/python3*/site-packages")
    # The folder named here is searched; its own .pth files, the editable install among them, are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    use_commands(python, tmp_path / "work", "safetensors", clips=12, steps=3)
