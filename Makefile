# Two commands are enough on a fresh machine: `make train` and `make test`. `make help` lists the others.

CONFIG ?= tiny
CLIPS ?= 400
CACHE ?= features
PYTHON ?= python3
TRAIN_ARGS ?=
BENCH_ARGS ?= --quick
SYNTH_ARGS ?=
CKPT ?= $(patsubst %/,%,$(dir $(firstword $(shell ls -t runs/*/run.json 2>/dev/null))))
TEXT ?= The first words of a new voice.
export TEXT
BIN := .venv/bin
SAMPLE := sample-corpus
READY := .venv/.ready
SAMPLE_READY := $(SAMPLE)/metadata.csv

.DEFAULT_GOAL := help
.PHONY: help train features verify test check bench synth doctor clean

help:
	@echo "make train [CONFIG=tiny] [TRAIN_ARGS='--steps N']   from nothing to a checkpoint; resumes by itself"
	@echo "make features [DATA=LJSpeech-1.1] [CONFIG=tiny]     build or update the cache in $(CACHE)/"
	@echo "make synth TEXT='...' [CKPT=runs/NAME]               speak into out.wav with the newest run"
	@echo "make verify     check the cache"
	@echo "make test       the tests            make check   ruff, mypy, layering, wheel contents"
	@echo "make clean      remove the environment, the sample corpus and the cache (runs/ stays)"

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
		{ echo "error: $(PYTHON) is not Python 3.11 to 3.13; fix: make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(SAMPLE_READY): $(READY)
	$(BIN)/xtts-precompute sample-corpus $(SAMPLE) --clips $(CLIPS) --seed 0
	@touch $@

# With DATA the cache of that corpus; without it the generated sample corpus.
ifdef DATA
features: $(READY)
	$(BIN)/xtts-precompute build --data '$(DATA)' --cache $(CACHE) --config $(CONFIG)
else
features: $(READY) $(SAMPLE_READY)
	$(BIN)/xtts-precompute build --data $(SAMPLE) --cache $(CACHE) --config $(CONFIG)
endif

# A finished cache is trained on as it is, whichever corpus it came from.
$(CACHE)/cache.json:
	$(MAKE) features

train: $(READY) $(CACHE)/cache.json
	$(BIN)/xtts-train --config $(CONFIG) --cache $(CACHE) --resume $(TRAIN_ARGS)

verify: $(READY)
	$(BIN)/xtts-precompute verify --cache $(CACHE)

test: $(READY)
	$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p build/types && ln -sfn ../.. build/types/xtts
	MYPYPATH=build/types $(BIN)/mypy -p xtts.shared -p xtts.precompute -p xtts.trainer
	$(BIN)/python -m pytest -q tests/test_layering.py tests/test_wheel.py

# CKPT: a run folder or one checkpoint; without it the run that was trained last.
synth: $(READY)
	$(if $(CKPT),,$(error no checkpoint in runs/: make train comes first, or give CKPT=DIR))
	$(BIN)/xtts-synth --ckpt '$(CKPT)' -o out.wav $(SYNTH_ARGS) -- "$$TEXT"

# Stage 1 against other tools, as ratios measured in one run; BENCH_ARGS= runs it at full size.
bench: $(READY)
	$(BIN)/python benchmarks/precompute.py $(BENCH_ARGS)

doctor: $(READY)
	$(BIN)/xtts-$@

clean:
	rm -rf .venv build $(SAMPLE) $(CACHE)
