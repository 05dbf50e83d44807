# Set-up and everyday commands. `make demo` and `make test` are all a fresh machine needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
CORE := .venv-core
PYTHONS := 3.12 3.13
# Tests and benchmarks fill the cores with processes; threads of BLAS would wait for each other.
export OPENBLAS_NUM_THREADS ?= 1
# uv does not know pip's wheel folders.
UV_INSTALL = UV_FIND_LINKS="$${UV_FIND_LINKS-$$(echo $$PIP_FIND_LINKS | tr ' ' ,)}" $(BIN)/uv pip install --quiet

.PHONY: demo demo-tune test test-slow test-lowest test-core test-pythons lint bench docs release clean

demo: $(VENV)/.demo
	$(BIN)/parabolt bench pco32 pco64 --optimizers parabolt,random,tpe,logeic --seeds 10 \
	    --out runs/demo

demo-tune: $(VENV)/.demo-tune
	$(BIN)/python examples/demo_tune.py runs/demo-tune

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

release: $(VENV)/.test
	$(BIN)/python scripts/check_release.py dist

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m "not slow" $(PYTEST_FLAGS)

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m slow $(PYTEST_FLAGS)

# Every dependency at the minimum version that pyproject.toml states: the quick tests, and of the slow
# ones those that libraries of an extra have little else of.
SLOW_LIBRARIES := tests/docs/test_site.py tests/test_release.py tests/experiments/test_study.py \
    $(addprefix tests/integrations/test_,ax.py ray_tune.py smac.py)
test-lowest: $(LOWEST)/.test
	$(LOWEST)/bin/python scripts/check_lowest.py
	$(LOWEST)/bin/python -m pytest -n 2 -m "not slow and not newest" $(PYTEST_FLAGS)
	$(LOWEST)/bin/python -m pytest -n 2 -m slow $(SLOW_LIBRARIES) $(PYTEST_FLAGS)

# The core alone, without any extra: each message that names an extra is seen here.
test-core: $(CORE)/.test
	$(CORE)/bin/python -m pytest -n 2 -m "not slow" --installed-only tests $(PYTEST_FLAGS)

# Other versions of Python, as far as the machine has them, with the extras that are light to install.
test-pythons: $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	for version in $(PYTHONS); do \
	    python$$version -c '' 2>/dev/null || { echo "no Python $$version here"; continue; }; \
	    python$$version -m venv --clear .venv-$$version && \
	    $(UV_INSTALL) --python .venv-$$version --editable '.[optuna,report,test-tools]' && \
	    .venv-$$version/bin/python -m pytest -n 2 -m "not slow" --installed-only $(PYTEST_FLAGS) || exit 1; \
	done

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.test
	$(BIN)/python benchmarks/speed.py

clean:
	rm -rf $(VENV) $(VENV)-* runs build dist

# One environment; a stamp for each set of extras, so that a second run installs nothing.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[optuna,report]'
	@touch $@

$(VENV)/.demo-tune: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 --editable '.[torch]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

$(CORE)/.test: pyproject.toml
	$(PYTHON) -m venv $(CORE)
	$(CORE)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test-tools]'
	@touch $@

# uv, because pip has no way to ask for the lowest versions.
$(LOWEST)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	$(BIN)/uv venv --quiet --clear --python 3.11 $(LOWEST)
	$(UV_INSTALL) --python $(LOWEST) --resolution lowest-direct --requirements pyproject.toml --extra test-lowest
	$(BIN)/uv pip install --quiet --python $(LOWEST) --no-deps --editable .
	@touch $@

$(VENV)/.lint: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lint,optuna,report]'
	@touch $@
