"""`xtts-synth`: the commands of `trainer/synth`, and `serve`. Heavy imports happen inside the commands."""

from xtts.trainer.serve.cli import serve
from xtts.trainer.synth.cli import main

main.add_command(serve)

if __name__ == "__main__":
    main()
