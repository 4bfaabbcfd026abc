"""`xtts-synth info`: what is known of runs and exported folders, without TensorFlow."""

import json
import re

from xtts.shared.config_files import load_config
from xtts.trainer.stored.model_folder import write_description
from xtts.trainer.synth_cli import main


def test_a_run_and_its_exports_say_what_they_are(finished_run, safetensors_folder, onnx_folder, call):
    said = {}
    for folder in (finished_run[0], safetensors_folder, onnx_folder):
        code, said[folder], err = call(main, "info", "--ckpt", folder)
        assert code == 0, err
        for line in ("languages    en", "mel profile  hifigan, 80 channels", "sample rate  22,050 Hz"):
            assert line in said[folder], folder
    run, weights, graph = (said[folder] for folder in said)
    for text in (run, weights):
        assert re.search(r"size +tiny, [\d,]{4,} parameters\n", text)
        assert re.search(r"step +12\n", text)
        assert re.search(r"started from nothing\n", text)
        assert re.search(r"recordings +own corpus\n", text)
        assert re.search(r"corpus +\d\.\d\d hours, \d+ clips\n", text)
    assert re.search(r"vocoder +ours\n +licence +not stated\n", run)
    assert re.search(r"size +tiny\n", graph)
    assert re.search(r"corpus +not known\n", graph)


def test_speakers_are_named_and_many_are_counted(several, call, micro, tmp_path):
    voice, config = several[1].voice, load_config("tiny", assignments=micro)
    (tmp_path / "tokenizer.json").write_text(json.dumps(voice.tokenizer.to_json()))
    for names, shown in ((voice.speakers, "3: ann, bo, cy\n"), ([f"p{n}" for n in range(25)], "p18, p19 and 5 more\n")):
        write_description(tmp_path, config=config, voice=voice.model_copy(update={"speakers": names}))
        assert shown in call(main, "info", "--ckpt", tmp_path)[1]
