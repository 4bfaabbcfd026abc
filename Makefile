# Two commands are enough on a fresh machine: `make train` and `make test`. `make help` lists the others.

CONFIG ?= tiny
GPU ?=
CLIPS ?= 160
LANGUAGE ?=
CACHE ?= features$(if $(LANGUAGE),-$(LANGUAGE))
PYTHON ?= python3
BUILD_ARGS ?=
TRAIN_ARGS ?=
RECORD_ARGS ?=
VOICE_ARGS ?=
TEST_ARGS ?=
TESTS ?=
BENCH_ARGS ?= --quick
SYNTH_ARGS ?=
APP_ARGS ?=
DOCTOR_ARGS ?=
CKPT ?=
TEXT ?= The first words of a new voice.
export TEXT
BIN := .venv/bin
SAMPLE := sample-corpus$(if $(LANGUAGE),-$(LANGUAGE))
READY := .venv/.ready
READY_DEV := .venv/.ready-dev
SAMPLE_READY := $(SAMPLE)/metadata.csv
# What training, every corpus and the voice need; Ray, linters and the servers of the tests come with READY_DEV.
EXTRAS := bpe,mandarin,phonemes,serve,train
# Without DATA and without a cache, the sample: generated recordings in a cache of their own, with two shapes, from our
# voice. Everything once, in minutes.
IS_SAMPLE := $(if $(DATA)$(wildcard $(CACHE)/cache.json $(CACHE)/.building),,yes)
ifdef IS_SAMPLE
CACHE := $(SAMPLE)-features
SAMPLE_SETTINGS := --set shapes.buckets=2
SAMPLE_STEPS := $(if $(filter tiny,$(CONFIG)),--steps 300)
endif
# Editors and type checkers do not run the finder of an editable install: they read folders. A .pth in the environment
# names one whose xtts/ holds links to the tree. Python itself still asks the finder first, so that a module has one
# path, the one in the tree, in tracebacks and for breakpoints.
PACKAGES := configs precompute shared trainer voices
FINDER_FIRST := import sys; sys.meta_path.sort(key=lambda finder: getattr(finder, "__name__", "") != "_EditableFinder")
SITE := import sysconfig; print(sysconfig.get_path("purelib"))

.DEFAULT_GOAL := help
.PHONY: help record voice train features cache verify test test-long check wheel-check dist bench demo synth app \
	doctor clean

help:
	@echo "make record LANGUAGE=en         a page to record a voice of your own, to train and to hear it, in my-voice/"
	@echo "make voice DATA=my-corpus LANGUAGE=en   from recordings with their texts to a voice, and a page to hear it"
	@echo "make train [CONFIG=tiny] [GPU=rtx4090] [DATA=...] [TRAIN_ARGS='--steps N']"
	@echo "                train a voice, continuing where it stopped; an existing cache is used unchanged, and with"
	@echo "                DATA updated first; without either, a sample: five minutes"
	@echo "make features [DATA=LJSpeech-1.1] [CONFIG=tiny]     build or update the cache in $(CACHE)/"
	@echo "                DATA=corpora.yaml: several corpora in one cache, see docs/corpus.md"
	@echo "                LANGUAGE=fa (de, ru, ...): for a corpus in that language, in features-fa/"
	@echo "                BUILD_ARGS='--columns id=0,text=1': further options of xtts-precompute build"
	@echo "make synth TEXT='...' [CKPT=runs/NAME]               speak into out.wav with the newest run, or our voice"
	@echo "make app [CKPT=runs/NAME]       the same on a page, and OpenAI's speech API"
	@echo "make verify     check the cache"
	@echo "make test       the tests, in ten minutes on two cores      make test-long  the long ones"
	@echo "make check      commit messages, ruff, mypy, pyright, layering, wheel contents"
	@echo "make wheel-check   the wheel in an empty environment, with downloads"
	@echo "make dist       sdist and wheel in dist/"
	@echo "make bench      the benchmarks"
	@echo "make demo       docs/demo/index.html, to hear our voices"
	@echo "make doctor     will this machine train this at full speed, and what to change"
	@echo "make clean      remove the environment, the sample corpus and the cache (runs/ stays)"

# pip would compile the packages on one core, their tests too: half of the time that it takes.
define INSTALL
$(BIN)/python -m pip install --quiet --no-compile --editable '.[$(1)]'
	@$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' "$$($(BIN)/python -c '$(SITE)')" || true
endef

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || \
		{ echo "error: $(PYTHON) is not Python 3.11 to 3.13; fix: make PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(call INSTALL,$(EXTRAS))
	@mkdir -p .venv/links/xtts
	@for folder in $(PACKAGES); do ln -sfn ../../../$$folder .venv/links/xtts/$$folder; done
	@printf '%s\n' '../../../links' '$(FINDER_FIRST)' > "$$($(BIN)/python -c '$(SITE)')/lockstep-links.pth"
	@touch $@

$(READY_DEV): $(READY)
	$(call INSTALL,dev)
	@touch $@

$(SAMPLE_READY): $(READY)
	$(BIN)/xtts-precompute sample-corpus $(SAMPLE) --clips $(CLIPS) --seed 0 $(if $(LANGUAGE),--language $(LANGUAGE))
	@touch $@

features: $(READY) $(if $(IS_SAMPLE),$(SAMPLE_READY))
	@$(if $(DATA)$(IS_SAMPLE),,echo 'error: $(CACHE) is the cache of a corpus; fix: the same command with DATA=that corpus'; exit 2)
	$(BIN)/xtts-precompute build --data '$(or $(DATA),$(SAMPLE))' --cache '$(CACHE)' --config $(CONFIG) \
		$(SAMPLE_SETTINGS) $(if $(LANGUAGE),--set text.language=$(LANGUAGE)) $(BUILD_ARGS)

# What comes before training and the doctor: an existing cache is used as it is, unless DATA is named.
cache: $(READY)
	@$(if $(DATA),,[ -e '$(CACHE)/cache.json' ] ||) $(MAKE) --no-print-directory features

train: cache
	$(BIN)/xtts-train --config $(CONFIG) $(if $(GPU),--config gpu/$(GPU)) $(SAMPLE_SETTINGS) --cache '$(CACHE)' \
		--resume $(SAMPLE_STEPS) $(TRAIN_ARGS)

# Without make: xtts-record my-voice --language en
record: $(READY)
	$(BIN)/xtts-record '$(or $(DATA),my-voice)' $(if $(LANGUAGE),--language $(LANGUAGE)) $(RECORD_ARGS)

# Without make: xtts-voice my-corpus --language en
voice: $(READY)
	@$(if $(DATA),,echo 'error: no recordings; fix: make voice DATA=my-corpus LANGUAGE=en'; exit 2)
	$(BIN)/xtts-voice '$(DATA)' --cache '$(CACHE)' --config $(CONFIG) $(if $(GPU),--config gpu/$(GPU)) \
		$(if $(LANGUAGE),--language $(LANGUAGE)) $(VOICE_ARGS)

verify: $(READY)
	$(BIN)/xtts-precompute verify --cache $(CACHE)

# What takes long (runs that compile other steps, kills at random moments, clusters, browsers, benchmarks) is in
# `test-long`. The last lines: memory, minutes, counts.
test: $(READY_DEV)
	@$(BIN)/python tests/rounds.py -m 'not long' $(TEST_ARGS)

# A file of tests goes to one process, which keeps what XLA compiled for it.
PYTEST = $(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(TEST_ARGS)

# TESTS: those of some folders alone, which may hold none (5). The whole of it leaves the commit that passed, from which
# .ci/run counts what has changed.
test-long: $(READY_DEV)
	$(PYTEST) -m long $(TESTS) || [ $$? -eq $(if $(TESTS),5,0) ]
	$(if $(TESTS)$(TEST_ARGS),,git diff --quiet HEAD && git rev-parse HEAD > .ci/long-passed)

check: $(READY_DEV)
	$(BIN)/python .ci/commits.py
	$(BIN)/ruff check .
	$(BIN)/mypy -p xtts.shared -p xtts.precompute -p xtts.trainer
	$(BIN)/pyright
	$(BIN)/python -m pytest -q tests/test_layering.py tests/test_wheel.py

# The wheel in an empty environment, with its dependencies from the package index: every command, where no repository is.
wheel-check: $(READY_DEV)
	$(BIN)/python .ci/commits.py
	$(BIN)/python tests/wheel_check.py

# What a release uploads.
dist: $(READY_DEV)
	$(BIN)/python -m build --outdir dist

# CKPT: a run folder, a checkpoint or a voice; without it the most recent run, or our voice if there is none.
SPEAKING = $(if $(CKPT),--ckpt '$(CKPT)')

synth: $(READY)
	$(BIN)/xtts-synth $(SPEAKING) -o out.wav $(SYNTH_ARGS) -- "$$TEXT"

app: $(READY)
	$(BIN)/xtts-synth serve $(SPEAKING) --open $(APP_ARGS)

# Every benchmark, ratios first; BENCH_ARGS= runs them at full size.
bench: $(READY_DEV)
	$(BIN)/python benchmarks/bench.py $(BENCH_ARGS)

# A page to hear our voices, from docs/demo/demo.yaml.
demo: $(READY)
	$(BIN)/python docs/make_demo.py

doctor: cache
	$(BIN)/xtts-doctor --cache '$(CACHE)' --config $(CONFIG) $(SAMPLE_SETTINGS) $(DOCTOR_ARGS)

clean:
	rm -rf .venv build $(SAMPLE) $(SAMPLE)-features '$(CACHE)'
