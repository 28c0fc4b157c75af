# make mnist    set up everything and train a convolutional network lazily (DATA=DIR for real MNIST files)
# make test     set up everything and run all tests
# make matrix   every operator of the table against eager libtorch, all dtypes (LTC_MATRIX_OPS=add.Tensor,mm chooses)
# make opinfo   every operator of PyTorch's database on ltc and on the CPU, compared (ARGS="--help" lists options)
# make fuzz     random programs on ltc and on the CPU, compared, from Python and from Rust (SECONDS=600 SEED=1; what is found is shrunk and kept)
# make modules  PyTorch's databases of modules and optimisers: trained on ltc (recorded and compiled) and on the CPU, compared
# make test-checked  the tests of compiled steps and the fuzzer, with every replay recorded and compared instead (LTC_CHECK_STEPS=1)
# make faults   the n-th compile, run, allocation, upload and download of a training run (STEPS=20) fails and is slow, for every n
# make soak     a training process with changing sizes, threads, compiled steps and errors (SECONDS=600): memory stays bounded
# make interleave  the executor, placeholders and waits under ITERATIONS orders of threads per test (SEED=1)
# make fuzz-parse  damaged texts, argument words and calls: CASES of each (a found input is printed, shrunk, and kept in proptest-regressions)

DATA ?=
ARGS ?=
# Of `make python`; `release` builds faster.
PROFILE ?= wheel

CASES ?= 1000000
# Of `make fuzz` (how long the Python door is tried, and the Rust door about as long) and `make soak`.
SECONDS ?= 600
SEED ?= 1
STEPS ?= 20
ITERATIONS ?= 100000

.PHONY: modules interleave test-checked fuzz faults soak fuzz-parse help setup mnist test python bench opinfo matrix test-cuda bench-cuda

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile
	@echo "other targets: setup python bench opinfo matrix test-cuda bench-cuda; all checks: cargo xtask ci"

setup:
	@scripts/setup.sh

mnist: setup
	cargo run --release -p ltc-torch --example mnist -- $(if $(DATA),--data "$(DATA)") $(ARGS)

test: setup
	cargo xtask ci --tests

python: setup
	.venv/bin/python -m pip install --quiet --disable-pip-version-check "maturin>=1.8,<2" -r ltc-python/requirements-test.txt
	cd ltc-python && VIRTUAL_ENV="$(CURDIR)/.venv" ../.venv/bin/maturin develop --profile $(PROFILE)

bench: python
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r ltc-python/benches/requirements.txt
	cargo run --release -p ltc-torch --example speed
	cargo xtask bench $(ARGS)

opinfo: python
	cd ltc-python && ../.venv/bin/python -m opinfo --results ../target/opinfo.jsonl $(ARGS)

modules: python
	cd ltc-python && ../.venv/bin/python -m opinfo.modules $(ARGS)

matrix: setup
	LTC_MATRIX_FULL=1 TORCH_CPP_LOG_LEVEL=ERROR cargo test -p ltc-tests --test matrix -- --nocapture $(ARGS)

fuzz: python
	@python=0; (cd ltc-python && ../.venv/bin/python -m fuzz --seconds $(SECONDS) --seed $(SEED) $(ARGS)) || python=1; \
	LTC_TEST_CASES=$$(( $(SECONDS) * 4 )) LTC_TEST_SEED=$(SEED) cargo test -p ltc-tests --test random_programs --test failed_calls \
		-- over_ random_programs_go_on && exit $$python

test-checked: python
	cd ltc-python && LTC_CHECK_STEPS=1 ../.venv/bin/python -m pytest -q tests/test_step_*.py tests/test_failed_steps.py tests/test_lazy_api.py \
		tests/test_symbolic.py tests/test_memory.py tests/test_citizen_train.py tests/test_fuzz.py $(ARGS)

faults: setup
	LTC_TEST_CASES=$(STEPS) cargo test -p ltc-core --test faults -- --nocapture

soak: python
	cd ltc-python && ../.venv/bin/python -m fuzz.soak --seconds $(SECONDS) $(ARGS)

interleave:
	LTC_TEST_CASES=$(ITERATIONS) LTC_TEST_SEED=$(SEED) cargo test -p ltc-core --features interleave --test interleave

fuzz-parse:
	PROPTEST_CASES=$(CASES) cargo test --release -p ltc-ir --test properties -- never_panic without_a_panic

test-cuda bench-cuda:
	@echo "make $@: there is no CUDA support yet (README, What is missing)" >&2; exit 1
