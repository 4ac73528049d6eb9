# Everything works in .venv at the root; PYTHON may name another interpreter (3.11 or newer) to make it with.
PYTHON ?= python3
# With these a release is tried.
PYTHONS ?= $(PYTHON)
BIN := .venv/bin
# Hundreds of the tests' processes begin sooner where what is compiled is kept.
unexport PYTHONDONTWRITEBYTECODE
FULL := oef-noncooperative max-min oef-cooperative water-filling nash-welfare fft-round posted-prices
SITE := $(BIN)/python -m sphinx --fail-on-warning --keep-going --nitpicky --jobs auto --builder
QUICK := $(FULL:%=quick-%) quick-rounds

# Rows of the ledger that a study decides.
STUDIES ?= fft-jct fft-ftf fft-starvation fft-migrations fft-fig13b ltgf-lease ltgf-jobfair ltgf-tenantfair \
	ltgf-jobfair-whole ltgf-tenantfair-whole ltgf-lease-whole oef-jct oef-straggler

# Kernels of the BLAS with which tests of floats are run, where the processor has them; what is tested with each.
KERNELS := SkylakeX Haswell Prescott
NUMERICAL := tests/methods tests/backends tests/certificates tests/models/nash tests/models/gavel tests/properties/test_misreports.py \
	tests/properties/test_same_witness.py

# One library or more of every dependency is used by these; they take some minutes.
VERSIONED := tests/backends/test_backends.py tests/test_decide.py tests/test_plot.py tests/test_codec.py tests/problem/test_files.py \
	tests/importing/test_documents.py tests/cli/test_cli.py tests/certificates/test_certificates.py tests/bench/report \
	tests/bench/test_bench_export.py tests/bench/test_bench_peers.py tests/test_concurrency.py tests/public/test_logging.py
# Install into build/$(1) with options $(2) of uv, which knows lowest versions: fairopt alone, which must decide, and then
# with all that is tested, of which deprecations are no failure here.
define AFRESH
set -e; rm -rf build/$(1); mkdir -p build; $(PYTHON) -m venv build/$(1); $(PYTHON) -m venv build/$(1)-uv; \
	build/$(1)-uv/bin/python -m pip install --quiet uv; install="build/$(1)-uv/bin/uv pip install --quiet --python build/$(1)/bin/python $(2)"; \
	$$install .; build/$(1)/bin/fairopt compare fairopt/datasets/oef_example.toml; \
	$$install --editable '.[dev]'; build/$(1)/bin/python -m pytest -W default -q -n auto --dist worksteal $(VERSIONED)
endef

.PHONY: live-slurm demo test house words test-lowest test-newest sbom kernels check format campaign validation torture differential mutants bench figures bench-full bench-large bench-more notebook certify claims studies studies-whole proofs verified \
	transcripts docs docs-links release clean

demo: .venv/ready ## set up, then every policy on two markets, and two policies of rounds on a real trace
	@$(BIN)/fairopt compare fairopt/datasets/oef_example.toml
	@$(BIN)/fairopt compare fairopt/datasets/gavel.toml
	@for policy in fft srtf; do $(BIN)/fairopt run fairopt/datasets/philly_1000.csv \
		--cluster fairopt/datasets/philly_cluster.toml --policy $$policy --rounds 60 --floats; done

test: .venv/ready ## set up, then pass the tests: five minutes on two cores are the budget
	$(BIN)/python -m pytest -n auto --dist worksteal

house: .venv/ready ## measure the size and shape of the code, as docs/house.md has it
	$(BIN)/python tests/house.py

words: ## count the words of each page under docs/ and in total
	@$(PYTHON) docs/words.py

test-lowest: ## the quick tests with the oldest versions that pyproject.toml allows, in environments of their own
	@$(call AFRESH,lowest,--resolution lowest-direct)

test-newest: ## the same with the newest versions
	@$(call AFRESH,newest,)

kernels: .venv/ready ## the tests of floats with several kernels of the BLAS: nothing but last digits may differ
	@set -e; for kernel in $(KERNELS); do export OPENBLAS_CORETYPE=$$kernel; \
		if $(BIN)/python -c 'import numpy; numpy.linalg.inv(numpy.eye(99))' 2>/dev/null; \
		then echo "BLAS kernel $$kernel"; $(BIN)/python -m pytest -n auto --dist worksteal -q -r fE $(NUMERICAL); \
		else echo "BLAS kernel $$kernel: not on this processor"; fi; done

check: .venv/ready ## linters and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/public/typed.py

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

campaign: .venv/ready ## the slow tests: more instances, larger markets, and more of what hypothesis draws; ONLY names files
	$(BIN)/python -m pytest -n auto --dist worksteal -m "slow or hypothesis" --hypothesis-profile campaign $(ONLY)

validation: .venv/ready ## published traces under published policies, into docs/validation.md: some minutes; interrupted, the same command goes on
	$(BIN)/python -m fairopt.benchmarks.validation

torture: .venv/ready ## a million trials, hours; interrupted, the same command goes on; the counts go into docs/reliability.md
	$(BIN)/python tests/torture --jobs $$(nproc) --journal build/torture.jsonl --write docs/reliability.md

differential: .venv/ready ## 300,000 certificates for both verifiers, an hour; interrupted, the same command goes on; the counts go into a page
	@proofs/verified/build.sh
	$(BIN)/python tests/torture/differential.py --journal build/differential.jsonl --write docs/concepts/proved-verifier.md

mutants: .venv/ready ## is every change of a verifier or property checker noticed? Hours; interrupted, the same command goes on; survivors are printed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,mutation]'
	$(BIN)/python tests/mutation

certify: .venv/ready ## certify every policy on 1,000 random markets, and say what could not be, and why
	$(BIN)/python -m fairopt.proofs.certify_markets

claims: .venv/ready ## recompute the ledger, write what comes out into its files, docs/ledger.md and docs/beyond.md
	$(BIN)/python -m fairopt.proofs.ledger.rewrite
	$(BIN)/python -m fairopt.proofs.ledger.page docs/ledger.md docs/beyond.md

studies: .venv/ready ## the quick form of the studies that decide claims: some minutes each; cells in build/studies/quick
	$(BIN)/python -m fairopt.proofs.ledger.studying --quick --cells build/studies/quick $(STUDIES)

studies-whole: .venv/ready ## the whole of them, into the ledger: hours; interrupted, the same command goes on
	$(BIN)/python -m fairopt.proofs.ledger.studying --write --cells build/studies $(STUDIES)

live-slurm: .venv/ready ## trees in a live Slurm (Debian's packages, installed where absent; root, half an hour), into its page
	@tests/live/install.sh
	$(BIN)/python tests/live --write docs/schedulers/slurm.md

proofs: ## the theorems, checked by Coq (installed from Debian's packages where it is missing), each with its axioms: none
	@proofs/theorems/check.sh

verified: ## the verifier that Coq proves, for fairopt check --verified: its theorems with their axioms, none, and the program
	@proofs/verified/build.sh

bench: .venv/ready ## all solvers beside each other, in less than ten minutes: a page in build/bench/report.html
	@rm -rf build/bench/quick && mkdir -p build/bench/quick
	@set -e; for spec in $(QUICK); do $(BIN)/fairopt bench $$spec --json build/bench/quick/$$spec.jsonl; done
	@$(BIN)/fairopt bench report build/bench/quick/*.jsonl --title "fairopt beside its peers" -o build/bench/report.html

bench-large: .venv/ready ## cooperative OEF with 3,000 users: some minutes
	@rm -rf build/bench/large && mkdir -p build/bench/large
	@$(BIN)/fairopt bench large-oef-cooperative --json build/bench/large/large-oef-cooperative.jsonl

figures: ## write what `make bench` and `make bench-large` measured into docs/benchmarks.md
	@$(BIN)/fairopt bench figures $(QUICK:%=build/bench/quick/%.jsonl) build/bench/large/*.jsonl \
		--made-by "make bench bench-large" --into docs/benchmarks.md

bench-full: .venv/ready ## the whole campaign: hours; interrupted, the same command goes on
	@mkdir -p build/bench/full
	@set -e; for spec in $(FULL); do $(BIN)/fairopt bench $$spec --json build/bench/full/$$spec.jsonl; done
	@$(BIN)/fairopt bench report build/bench/full/*.jsonl --title "fairopt beside its peers" -o build/bench/full.html

bench-more: .venv/ready ## what exactness, nearby and small markets, misreports, comparisons, rounds and posted prices cost
	$(BIN)/python benchmarks/exact.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/resolves.py
	$(BIN)/python benchmarks/misreports.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/compares.py
	$(BIN)/python benchmarks/fft_rounds.py
	$(BIN)/python benchmarks/posted_prices.py
	$(BIN)/python benchmarks/flows.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/small_markets.py

notebook: .venv/ready ## run the notebooks again and keep their outputs
	$(BIN)/python docs/rerun_notebooks.py

transcripts: .venv/ready ## run the sessions of docs/first-ten-minutes and of tutorials again and write what is printed now into the pages
	$(BIN)/python tests/documents/transcripts.py

.PHONY: live-plan
live-plan: .venv/ready ## a plan on a live Slurm, for its tutorial; needs root, installs Slurm, takes a quarter of an hour
	sh tests/live/install.sh
	$(BIN)/python tests/live/live_plan.py

docs: .venv/docs-ready ## the site, in build/docs: every example on it is run, and any warning is an error
	$(SITE) html docs build/docs
	@echo "open build/docs/index.html"

docs-links: .venv/docs-ready ## whether what the site links to outside is there; needs the network
	$(SITE) linkcheck docs build/docs-links

.venv/docs-ready: .venv/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,docs]'
	@touch $@

sbom: .venv/ready ## list every library of .venv in dist/sbom.json (CycloneDX), and the licences of dependencies in LICENSES.md
	@mkdir -p dist && $(PYTHON) -m venv build/cyclonedx && build/cyclonedx/bin/python -m pip install --quiet cyclonedx-bom
	build/cyclonedx/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type library --output-reproducible \
		--output-file dist/sbom.json $(BIN)/python
	$(BIN)/python docs/licences.py

release: .venv/ready ## build wheel and source package, try both in new environments, write the notes: all in dist/
	@rm -rf dist && $(BIN)/python -m pip install --quiet build twine
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/packaging/check_installed.py dist/*.whl $(PYTHONS)
	$(BIN)/python tests/packaging/check_installed.py dist/*.tar.gz $(PYTHON)
	@awk '/^## /{n++} n==1' CHANGELOG.md > dist/NOTES.md

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "fairopt needs Python 3.11 or newer; name one with make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv build docs/_generated dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
