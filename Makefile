# Every target sets up .venv by itself, from Python 3.11 or newer and pip; uv is used where it is installed.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check bench clean .venv

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name) 2>/dev/null)))
BIN := .venv/bin
STAMP := .venv/.installed
UV := $(shell command -v uv 2>/dev/null)
PIP_FLAGS := --disable-pip-version-check -qq

help: ## Show what can be made
	@grep -hE '^[a-z.]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

demo: .venv ## From a fresh clone to a visible result
	@PATH="$(CURDIR)/$(BIN):$$PATH" understudy run examples/agents.yaml
	@echo
	@echo "What to try next:"
	@echo "  git -C examples/agents/.state/shop log --oneline --graph   what the agents did"
	@echo "  $(BIN)/understudy ls                                    workstreams; show ID, logs ID and explain ID tell more"
	@echo "  $(BIN)/understudy history breaker:coder                 how the breaker opened and closed"
	@echo "  $(BIN)/understudy run examples/scrape.yaml              a server that asks for time"
	@echo "  $(BIN)/python examples/resume_demo.py                   killed half way, and resumed"

test: .venv ## Run the test suite (ARGS="-k name" for a part)
	$(BIN)/python -m pytest $(ARGS)

check: .venv ## ruff, mypy strict, pyright, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p understudy
	$(BIN)/mypy tests examples benchmarks
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: .venv ## Measure speed and memory against peers (ONLY=kernel for a part)
	$(BIN)/python -m benchmarks $(ONLY)

.venv: $(STAMP) ## Set up the environment

$(STAMP): pyproject.toml .ci/constraints.txt
	@echo "Setting up .venv ..."
ifneq ($(UV),)
	@$(UV) venv --quiet --clear --seed --python "$(PYTHON)" .venv
	@$(UV) pip install --quiet --python $(BIN)/python --constraint .ci/constraints.txt --editable . --group test --group check --group bench
else
	@"$(PYTHON)" -c 'import sys; sys.exit("Python 3.11 or newer is needed, found " + sys.version) if sys.version_info < (3, 11) else None'
	@"$(PYTHON)" -m venv --clear .venv
	@$(BIN)/python -m pip install $(PIP_FLAGS) --constraint .ci/constraints.txt pip
	@$(BIN)/python -m pip install $(PIP_FLAGS) --constraint .ci/constraints.txt --editable . --group test --group check --group bench
endif
	@touch $@

clean: ## Remove what was made
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache benchmarks/results.jsonl benchmarks/data
