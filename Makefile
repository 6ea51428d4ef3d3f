# Plimsoll: run it, test it, keep its word lists and locks in order. README.md gives the plain commands behind each target.
.POSIX:
.PHONY: help run test check messages lock bench accuracy clean venv

BIN = .venv/bin
PORT = 8501
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check
SPEAKING = calc data probe ui pages cli.py app.py
# No index address and no machine path may enter a lock file.
LOCK = $(BIN)/pip-compile --quiet --no-header --strip-extras --no-emit-options --no-emit-index-url --no-emit-find-links --no-emit-trusted-host

help:
	@echo "make run       install what is needed and serve the dashboard on port $(PORT) (make run PORT=8600: another port)"
	@echo "make test      check, then every test"
	@echo "make check     style, types and the direction of imports"
	@echo "make messages  collect the sentences to translate, compile the translations"
	@echo "make bench     how many requests per second the simulator simulates, and how long each page takes"
	@echo "make accuracy  docs/accuracy.md anew, from a folder of real observations (PLIMSOLL_CASES)"
	@echo "make lock      renew requirements.txt and requirements-dev.txt"
	@echo "make clean     remove the environment and everything built; the database in var/ stays"

run: .venv/.run
	@echo "Starting Plimsoll; Ctrl-C stops it."
	@$(BIN)/streamlit run app.py --server.port $(PORT)

# make -j2 test lets the simulator compile while the code is checked.
test: check .venv/.run
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

check: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

messages: .venv/.dev
	@mkdir -p var
	$(BIN)/pybabel --quiet extract -F babel.cfg -k t -k msg --no-location --omit-header --sort-output -o var/plimsoll.pot $(SPEAKING)
	$(BIN)/pybabel --quiet update -D plimsoll -d ui/locale -i var/plimsoll.pot -l zh_CN --no-fuzzy-matching --ignore-obsolete
	$(BIN)/pybabel --quiet compile -D plimsoll -d ui/locale

bench: .venv/.dev
	$(BIN)/python cli.py bench-simulator
	$(BIN)/python -m pytest tests/bench --benchmark-only --benchmark-columns=min,median,max --benchmark-sort=name

accuracy: .venv/.dev
	$(BIN)/python tests/accuracy.py

lock: .venv/.dev
	$(PIP) pip-tools
	$(LOCK) --output-file requirements.txt pyproject.toml
	$(LOCK) --extra dev --constraint requirements.txt --output-file requirements-dev.txt pyproject.toml

clean:
	rm -rf .venv build dist plimsoll.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

venv: .venv/bin/python

.venv/bin/python:
	@for python in python3.13 python3.12 python3.11 python3; do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making .venv with $$python"; exec "$$python" -m venv .venv; \
		fi; \
	done; \
	echo "Plimsoll needs Python 3.11 or newer, and none was found as python3: install one (python.org) and try again." >&2; exit 1

.venv/.packages: .venv/bin/python requirements.txt pyproject.toml
	@echo "Installing about 1 GB into .venv; once, a few minutes"
	@$(PIP) -r requirements.txt
	@$(PIP) --no-deps --editable .
	@touch $@

.venv/.run: .venv/.packages
	@echo "Compiling the simulator; once, about two minutes"
	@$(BIN)/python -m calc.simulator.warm
	@touch $@

.venv/.dev: .venv/.packages requirements-dev.txt
	@echo "Installing the tools of the tests"
	@$(PIP) -r requirements-dev.txt
	@touch $@
