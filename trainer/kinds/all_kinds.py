"""All kinds of model by name. A new one needs a file in this folder, and an entry in this module."""

from xtts.shared.config import Config
from xtts.shared.errors import LockstepError
from xtts.trainer.kinds import acoustic, vocoder
from xtts.trainer.kinds.kind import Kind

KINDS = {kind.name: kind for kind in (acoustic.KIND, vocoder.KIND)}


def kind_of(config: Config) -> Kind:
    """The kind of model that a configuration trains; `LockstepError` if there is none of that name."""
    if (name := config.training.kind) not in KINDS:
        raise LockstepError("training.kind", found=repr(name), expected=" or ".join(KINDS))
    return KINDS[name]
