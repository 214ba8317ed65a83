# make demo        set up, build, and see the paper's claim in about five minutes
# make test        set up, build, and run all tests
# make test-long   what an attacker and a bad day can do, at length: kills, power cuts, forged runs, failing
#                  allocations, hostile sources, a minute of fuzzing for each parser (scripts/setup --fuzz installs
#                  what that needs), soaks, and pip install from a clone; about two hours, on an idle machine
# make test-sanitize, test-threads   all tests under the address and undefined-behaviour sanitizers; those of
#                  base, image and stream under the thread sanitizer
# make install     the program, libraries and headers to PREFIX; BUNDLE=1: with LibTorch
# make wheel       the Python package in build/wheels, for the torch in .deps
# make package     a .deb and a .tar.gz in build/packages, with LibTorch for CPUs
.PHONY: demo test test-long build build-tests setup setup-peers bench format check-format test-sanitize test-threads install package wheel clean
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.cc' '*.h' '*.cu' '*.cuh')

demo: build
	build/riffle demo

test: build-tests
	ctest --preset release -j $(JOBS)

test-long: build-tests
	ctest --preset release -C long -R '^long\.' --verbose

build: setup
	@test -f build/build.ninja || cmake --preset release
	cmake --build build --target riffle -j $(JOBS)

build-tests: setup-peers
	@test -f build/build.ninja || cmake --preset release
	cmake --build build -j $(JOBS)

setup:
	@scripts/setup

setup-peers:
	@scripts/setup --peers

bench: setup-peers build
	build/riffle bench load
	build/riffle bench step
	build/riffle bench pipeline --size 32 --stem small --capacity 1024 --batch 64 --rounds 3
	build/riffle bench minred

format: setup
	clang-format -i $(SOURCES)

check-format: setup
	@clang-format --dry-run --Werror $(SOURCES)

test-sanitize: setup-peers
	@test -f build-sanitize/build.ninja || cmake --preset sanitize
	cmake --build --preset sanitize -j $(JOBS)
	ctest --preset sanitize -j $(JOBS)

test-threads: setup-peers
	@test -f build-threads/build.ninja || cmake --preset threads
	cmake --build --preset threads -j $(JOBS)
	ctest --preset threads -j $(JOBS)

install: build
	cmake --install build --prefix "$(PREFIX)"
	$(if $(BUNDLE),cmake --install build --prefix "$(PREFIX)" --component libtorch)

package: build
	cd build && cpack

wheel: setup-peers
	@test -f build/build.ninja || cmake --preset release
	cmake --build build --target riffle_python -j $(JOBS)
	scripts/make-wheel build

clean:
	rm -rf build build-debug build-sanitize build-threads build-fuzz
