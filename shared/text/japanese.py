"""Japanese to kana by Open JTalk (`pyopenjtalk-plus`, extra `japanese`): what is spoken, not what is written."""

import io
import re
from contextlib import redirect_stdout
from typing import Any

from xtts.shared.errors import LockstepError

_WRITTEN = re.compile("[\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff0-9]+")


def kana_reading(text: str) -> str:
    """The text with its Japanese words and numbers as katakana, as they are spoken; all else stays.

    Raises:
        LockstepError: There is Japanese, but no pyopenjtalk.
    """
    return _WRITTEN.sub(lambda found: str(_engine().g2p(found[0], kana=True)), text)


def _engine() -> Any:  # noqa: ANN401 - a module of an optional library
    try:
        with redirect_stdout(io.StringIO()):  # it advises another extra
            import pyopenjtalk  # pyright: ignore[reportMissingImports]
    except ImportError:
        fix = "pip install 'lockstep-tts[japanese]'"
        raise LockstepError("text.language", found="Japanese without pyopenjtalk-plus", fix=fix) from None
    return pyopenjtalk
