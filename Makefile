# make mnist    set up everything and train a convolutional network lazily (DATA=DIR for real MNIST files)
# make test     set up everything and run all tests
# make matrix   every operator of the table against eager libtorch, all dtypes (LTC_MATRIX_OPS=add.Tensor,mm chooses)
# make symbols  the debug information of the extension that `make python` builds, which has none, as a file for debuggers and profilers
# make opinfo   every operator of PyTorch's database on ltc and on the CPU, compared (ARGS="--help" lists options)
# make fuzz     random programs on ltc and on the CPU, compared, from Python and from Rust (SECONDS=600 SEED=1; what is found is shrunk and kept)
# make modules  PyTorch's databases of modules and optimisers: trained on ltc (recorded and compiled) and on the CPU, compared
# make zoo      some 90 models of transformers, torchvision, timm, diffusers, torchaudio, PyTorch Geometric and tutorials, trained on ltc in
#               every way and on the CPU, and compared (docs/zoo.md; ARGS="--help" lists options, ARGS=--resume goes on)
# make test-checked  the tests of compiled steps, of whatever may call them, and the fuzzer, with every replay recorded and compared instead (LTC_CHECK_STEPS=1)
# make faults   the n-th compile, run, allocation, upload and download of a training run (STEPS=20) fails and is slow, for every n
# make soak     a training process with changing sizes, threads, compiled steps and errors (SECONDS=600): memory stays bounded
# make interleave  the executor, placeholders and waits under ITERATIONS orders of threads per test (SEED=1)
# make soak-ranks  two processes with collectives, STEPS=10000 of them, which read, cut, log and drop at different places
# make fuzz-parse  damaged texts, argument words and calls: CASES of each (a found input is printed, shrunk, and kept in proptest-regressions);
#                  and SECONDS of each guided by coverage, where there are a nightly compiler and cargo-fuzz
# make sanitize  the C++ at the border to libtorch under AddressSanitizer and UndefinedBehaviorSanitizer: Rust and Python tests that cross it
# make races     the executor, placeholders and waits, and the C++ at the border, under ThreadSanitizer, where there is a nightly compiler
# make test-dry  CUDA without a GPU: libtorch's host code, and ltc on it, over a stand-in of the CUDA runtime (docs/cuda.md)
# make miri      the crates without libtorch under Miri, where it is installed

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

.PHONY: symbols modules interleave sanitize races miri test-checked fuzz fuzz-guided faults soak soak-ranks fuzz-parse help setup mnist test python bench
.PHONY: zoo opinfo matrix test-dry test-cuda bench-cuda

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile
	@echo "other targets: setup python bench opinfo matrix test-dry test-cuda bench-cuda; all checks: cargo xtask ci"

setup:
	@scripts/setup.sh

mnist: setup
	cargo run --release -p ltc-torch --example mnist -- $(if $(DATA),--data "$(DATA)") $(ARGS)

test: setup
	cargo xtask ci --tests

python: setup
	.venv/bin/python -m pip install --quiet --disable-pip-version-check "maturin>=1.8,<2" -r ltc-python/requirements-test.txt
	cd ltc-python && VIRTUAL_ENV="$(CURDIR)/.venv" ../.venv/bin/maturin develop --profile $(PROFILE)

# The same code once more, in a target directory of its own, which may be removed afterwards.
symbols: setup
	CARGO_PROFILE_WHEEL_STRIP=none cargo build -p ltc-python --profile wheel --target-dir target/symbols
	objcopy --only-keep-debug target/symbols/wheel/lib_ltc.so target/symbols/_ltc.abi3.so.debug
	@echo "target/symbols/_ltc.abi3.so.debug: gdb -ex 'symbol-file FILE' or addr2line -e FILE take it"

bench: python
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r ltc-python/benches/requirements.txt
	cargo run --release -p ltc-torch --example speed
	cargo xtask bench $(ARGS)

opinfo: python
	cd ltc-python && ../.venv/bin/python -m opinfo --results ../target/opinfo.jsonl $(ARGS)

modules: python
	cd ltc-python && ../.venv/bin/python -m opinfo.modules $(ARGS)

zoo: python
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -r ltc-python/zoo/requirements.txt
	cd ltc-python && ../.venv/bin/python -m zoo --results ../target/zoo.jsonl $(ARGS)

matrix: setup
	LTC_MATRIX_FULL=1 TORCH_CPP_LOG_LEVEL=ERROR cargo test -p ltc-tests --test matrix -- --nocapture $(ARGS)

fuzz: python
	@python=0; (cd ltc-python && ../.venv/bin/python -m fuzz --seconds $(SECONDS) --seed $(SEED) $(ARGS)) || python=1; \
	LTC_TEST_CASES=$$(( $(SECONDS) * 4 )) LTC_TEST_SEED=$(SEED) cargo test -p ltc-tests --test random_programs --test failed_calls \
		-- over_ random_programs_go_on && exit $$python

# Of the rest of the tests, those that call compiled steps or may come to.
CHECKED ?= failed_steps lazy_api symbolic memory fuzz citizen citizen_errors citizen_train device device_module docs dynamo \
	examples frameworks layouts opinfo_quick overlap speed_paths

test-checked: python
	cd ltc-python && LTC_CHECK_STEPS=1 ../.venv/bin/python -m pytest -q tests/test_step_*.py $(CHECKED:%=tests/test_%.py) $(ARGS)

faults: setup
	LTC_TEST_CASES=$(STEPS) cargo test -p ltc-core --test faults -- --nocapture

soak: python
	cd ltc-python && ../.venv/bin/python -m fuzz.soak --seconds $(SECONDS) $(ARGS)

soak-ranks: STEPS = 10000
soak-ranks: python
	cd ltc-python && OMP_NUM_THREADS=1 ../.venv/bin/python -W ignore -m torch.distributed.run --standalone \
		--nproc-per-node 2 -m fuzz.ranks --steps $(STEPS) $(ARGS)

interleave:
	LTC_TEST_CASES=$(ITERATIONS) LTC_TEST_SEED=$(SEED) cargo test -p ltc-core --features interleave --test interleave

fuzz-parse:
	PROPTEST_CASES=$(CASES) cargo test --release -p ltc-ir --test properties -- never_panic without_a_panic
	@if cargo +nightly fuzz --version >/dev/null 2>&1; then $(MAKE) fuzz-guided; \
	else echo "guided by coverage: not run, it needs a nightly compiler and cargo-fuzz (cargo install cargo-fuzz)"; fi

# What it finds lies in target/fuzz; what it ran so far, too, so that it goes on from there.
FUZZER = cargo +nightly fuzz run --target-dir ../target/fuzz --sanitizer none
FUZZED = -max_total_time=$(SECONDS) -timeout=10 -rss_limit_mb=2048 -artifact_prefix=../target/fuzz/

fuzz-guided:
	mkdir -p target/fuzz/corpus/text target/fuzz/corpus/arguments
	cd ltc-ir && $(FUZZER) text ../target/fuzz/corpus/text fuzz/seeds/text -- -dict=fuzz/text.dict $(FUZZED)
	cd ltc-ir && $(FUZZER) arguments ../target/fuzz/corpus/arguments -- $(FUZZED)

# In a target directory of its own, which may be removed afterwards. libtorch itself is not instrumented: what it keeps at
# exit is no leak of ours, containers that cross the border are not checked for overflow, and tests ask for more memory than there is.
SANITIZED = CARGO_TARGET_DIR="$(CURDIR)/target/sanitize" LTC_SANITIZE=address,undefined CARGO_PROFILE_DEV_DEBUG=line-tables-only \
	ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0:allocator_may_return_null=1:$(ASAN_OPTIONS) UBSAN_OPTIONS=print_stacktrace=1 TORCH_CPP_LOG_LEVEL=ERROR
SANITIZE_RUST ?= errors_and_fallbacks devices_and_threads failed_calls replayed_steps training_equals_eager random_programs
SANITIZE_PYTHON ?= test_device test_layouts test_roots test_failed_steps test_step_history test_recurrent
# The run-time libraries of the compiler that builds the C++.
SANITIZERS = $(foreach l,libasan.so libubsan.so libstdc++.so,$(shell $${CXX:-c++} -print-file-name=$(l)))
EMPTY :=
COLON = $(subst $(EMPTY) $(EMPTY),:,$(strip $(1)))

# They have to be the first that a process loads.
HOST = $(shell rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')

sanitize: setup
	$(SANITIZED) \
		CARGO_TARGET_$(HOST)_RUNNER="env LD_PRELOAD=$(call COLON,$(SANITIZERS))" cargo test -p ltc-tests $(SANITIZE_RUST:%=--test %)
	.venv/bin/python -m pip install --quiet --disable-pip-version-check "maturin>=1.8,<2" -r ltc-python/requirements-test.txt
	$(SANITIZED) cargo build -p ltc-python
	rm -rf target/sanitize/python && mkdir -p target/sanitize/python
	cp -r ltc-python/python/torch_ltc target/sanitize/python && rm -f target/sanitize/python/torch_ltc/_ltc*.so
	cp target/sanitize/debug/lib_ltc.so target/sanitize/python/torch_ltc/_ltc.abi3.so
	cd ltc-python && LD_PRELOAD=$(call COLON,$(SANITIZERS)) $(SANITIZED) PYTHONPATH="$(CURDIR)/target/sanitize/python" PYTHONMALLOC=malloc \
		../.venv/bin/python -m pytest -q -p no:cacheprovider $(SANITIZE_PYTHON:%=tests/%.py)

# Tests that decide by clocks are left out: ThreadSanitizer makes all of them slow.
RACES ?= reused_nodes program_order failed_calls native_tensors faults a_session_over_a_backend_without_numerics
# Then Rust and the C++ at the border together. Kernels of libtorch and `tch` are not instrumented, so they get no
# threads of their own; call sites are not looked up, since ThreadSanitizer's reports wait for whoever looks at the stack.
RACES_BORDER ?= devices_and_threads replayed_steps failed_calls random_programs executor_thread
RACING = RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" CARGO_TARGET_DIR="$(CURDIR)/target/races" \
	TSAN_OPTIONS="suppressions=$(CURDIR)/ltc-core/tests/races.supp history_size=7"
TRIPLE = $(shell rustc -vV | sed -n 's/^host: //p')

races: setup
	@cargo +nightly --version >/dev/null 2>&1 || \
		{ echo "make races: there is no nightly compiler (rustup toolchain install nightly)" >&2; exit 1; }
	$(RACING) cargo +nightly test -p ltc-core --features races --target $(TRIPLE) $(RACES:%=--test %)
	$(RACING) LTC_SANITIZE=thread LTC_SITES=0 OMP_NUM_THREADS=1 LTC_TEST_CASES=150 TORCH_CPP_LOG_LEVEL=ERROR \
		cargo +nightly test -p ltc-tests --features ltc-core/races --target $(TRIPLE) $(RACES_BORDER:%=--test %) -- --test-threads=1

# Tests that start processes, take minutes or look at files are left out; of kernels, machine code and vector instructions.
miri:
	@cargo +nightly miri --version >/dev/null 2>&1 || \
		{ echo "make miri: Miri is not installed (rustup toolchain install nightly --component miri)" >&2; exit 1; }
	MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=4 cargo +nightly miri test -p ltc-ir --lib --test recycled_nodes --test verifier --test properties
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p ltc-backend --lib
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test -p ltc-core --test a_session_over_a_backend_without_numerics
	LTC_ISA=portable INSTA_WORKSPACE_ROOT=$(CURDIR) MIRIFLAGS=-Zmiri-disable-isolation \
		cargo +nightly miri test -p ltc-kernels --lib --test loops \
		-- --skip jit --skip two_last_places --skip cuda::cache

test-dry: python
	cargo xtask dry $(ARGS)

# A driver that sees a GPU.
GPU = nvidia-smi -L 2>/dev/null | grep -q GPU

define NO_GPU
	@$(GPU) || { echo "make $@: no GPU here. It needs one of sm_75 or newer, a driver 580 or newer (nvidia-smi -L lists it)" >&2; \
		echo "and a torch with CUDA. What needs no GPU: make test-dry" >&2; exit 2; }
endef

test-cuda:
	$(NO_GPU)
	$(MAKE) python
	cd ltc-python && LTC_DEVICES=cpu,cuda:0 LTC_FUSION=1 LTC_JIT=now ../.venv/bin/python -m pytest -q tests/gpu $(ARGS)

bench-cuda:
	$(NO_GPU)
	$(MAKE) python
	LTC_DEVICES=cpu,cuda:0 .venv/bin/python ltc-python/benches/gpu_steps.py $(ARGS)
