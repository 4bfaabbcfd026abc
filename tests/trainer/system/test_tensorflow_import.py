"""XLA's cache is kept apart for machines whose compiled code differs."""

from xtts.trainer.system.tensorflow_import import _machine


def test_compiled_code_is_kept_by_processor_and_gpu(tmp_path):
    def machine(name, flags, *cards):
        proc = tmp_path / name
        for number, card in enumerate(cards):
            folder = proc / "driver" / "nvidia" / "gpus" / f"0000:0{number}"
            folder.mkdir(parents=True)
            (folder / "information").write_text(f"Model: \t\t {card}\nGPU UUID: \t GPU-{name}\n")
        proc.mkdir(exist_ok=True)
        (proc / "cpuinfo").write_text(f"processor\t: 0\ncpu MHz\t: {len(name)}\nflags\t\t: {flags}\n" * 2)
        return _machine(proc)

    plain = machine("plain", "fma avx2")
    assert machine("twin", "fma avx2") == plain
    assert machine("third", "fma avx2") == plain
    cards = [machine("a", "fma avx2", "RTX 3060"), machine("b", "fma avx2", "A100"), machine("c", "fma", "A100")]
    assert len({plain, *cards}) == 4
    assert machine("d", "fma avx2", "A100") == cards[1]
    assert _machine(tmp_path / "none") != plain
