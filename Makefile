# make demo: sets up what is missing and shows a result.   make test: sets up the same way and runs the tests.
SHELL = /bin/bash
PYTHON = .venv/bin/python
SCRIPTS = scpslab tools/packages tools/setup-python tools/bench tools/with-cargo tools/slides .ci/run images/guest/customize.sh stack/benches/transfers.sh stack/benches/gateway.sh \
	tools/build-images tools/check-host tools/playbooks-test tools/vagrant-box tools/vagrant-test tools/wheel tools/student-kit tools/wheel-test tools/image/build tools/release images/base/endpoint images/base/install-packages images/base/roles.sh \
	src/scpslab_course/autograder/setup.sh src/scpslab_course/autograder/run_autograder \
	$(wildcard images/*/roles/* images/*/checks/*)

# A file's tests share what is costly to make, so they stay together; the longest files, those with labs, come first.
ON_ALL_CORES = --numprocesses=logical --maxprocesses=4 --dist=loadfile --no-loadscope-reorder

AREAS := $(shell python3 tools/areas.py)

.PHONY: test-all test-files test-draws $(AREAS:%=test-%) test-appliance test-scale test-autograder test-course wheel instructors student-kit wheel-test image image-arm64 release install-stack uninstall-stack deb same-bytes test-host test-forks test-stack lint-playbooks docker-images playbooks-test vagrant-test pin published site slides prompt-picture studio-pictures help demo test development setup packages python images lint fmt docs bench ci clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

demo: setup ## run four transports over a satellite hop, with bit errors and with congestion, in virtual time: a table and a figure
	./scpslab demo

test: setup development ## run the quick tests on up to four cores, five cells of the virtual engine, five drawn scenarios and the Rust part's units among them (five minutes; no root)
	$(PYTHON) -m pytest $(ON_ALL_CORES) -m "smoke or not (lab or slow)"
	@PROPTEST_RNG_SEED=1997 tools/with-cargo $(MAKE) -C stack test-quick

test-all: test $(AREAS:%=test-%) ## run all tests: make test, then every area (half an hour on two cores; needs cargo for the Rust part)

test-files: setup development ## run the slow tests and those of labs in the test files FILES
	$(PYTHON) -m pytest $(ON_ALL_CORES) -m "(lab or slow) and not smoke" $(FILES)

# The areas: what belongs to each, and which test files a change concerns, is in tools/areas.py.
$(filter-out test-rust,$(AREAS:%=test-%)): setup development
	$(PYTHON) -m pytest $(ON_ALL_CORES) -m "(lab or slow) and not smoke" $$(python3 tools/areas.py --tests $(@:test-%=%))

test-draws: setup development ## run DRAWS scenarios (2000) drawn at random from SEED (2), and print what they reach; one core takes some three hours
	SCPSLAB_DRAWS=$(or $(DRAWS),2000) SCPSLAB_DRAWS_SEED=$(or $(SEED),2) $(PYTHON) -m pytest $(ON_ALL_CORES) -m lab tests/lab/test_drawn.py

test-rust: ## run the whole Rust part, with the same cases every time (its tests skip, and name, the programs that are missing here)
	@PROPTEST_RNG_SEED=1997 tools/with-cargo $(MAKE) -C stack test

install-stack: ## install the SCPS stack alone, the program scps and its manual pages, under PREFIX (/usr/local); DESTDIR as usual; needs cargo
	@$(MAKE) --no-print-directory -C stack install

uninstall-stack: ## remove what install-stack has put under PREFIX
	@$(MAKE) --no-print-directory -C stack uninstall

deb: ## a Debian package of the SCPS stack: program, manual pages, the gateway's unit; needs cargo here, and none where it is installed
	@$(MAKE) --no-print-directory -C stack deb

test-stack: ## run the tests of the Rust part with newly drawn cases; installs vsftpd, curl, ssh, iperf3, tshark and more for them (some tests need root)
	@tools/packages --stack-tests
	SCPS_KILLS=40 $(MAKE) -C stack test test-install

test-host: setup development ## test engine host in a guest that plays the machine: killed labs leave nothing, times agree with virtual time (15 minutes; needs Docker)
	SCPSLAB_KILLS=50 SCPSLAB_AGREEMENT=3 $(PYTHON) -m pytest --capture=no tests/lab/test_host.py

test-forks: setup development ## test that forks of templates are what guests of their own are: Docker too, and 30 kills of a run, a template, a fork (30 minutes; needs Docker)
	SCPSLAB_LINK_CELLS=200 SCPSLAB_DOCKER_FORKS=1 SCPSLAB_FORK_SETTINGS=1 SCPSLAB_RUN_KILLS=30 SCPSLAB_TEMPLATE_KILLS=30 SCPSLAB_FORK_KILLS=30 $(PYTHON) -m pytest \
		tests/lab/test_snapshots.py tests/lab/test_fork_settings.py tests/lab/test_fork_randomness.py tests/lab/test_fork_failures.py tests/lab/test_killed_runs.py tests/lab/test_link_model.py

test-appliance: setup development ## test that cells in the appliance have the bytes of native ones, and that a killed machine is replaced (installs qemu-system-x86; builds its kernel once; half an hour)
	@tools/packages --appliance
	SCPSLAB_APPLIANCE_TESTS=1 $(PYTHON) -m pytest --capture=no tests/lab/test_appliance.py

test-scale: development ## test runs on Dask clusters: workers, scheduler and client killed 30 times each, lies, a network that is cut for a minute (half an hour)
	SCPSLAB_SCALE_KILLS=30 $(PYTHON) -m pytest --numprocesses=3 --dist=load tests/processes/test_dask.py

test-course: setup development ## test a semester of 80 made-up students: every assignment issued, solved with mistakes, cheated in 33 ways, graded in a container of one core and 2 GB; CLASS=40 is smaller (hours; needs Docker Engine)
	SCPSLAB_CLASS=$(or $(CLASS),80) $(PYTHON) -m pytest --capture=no tests/lab/test_semester.py tests/lab/test_class.py tests/lab/test_assignments.py

test-autograder: setup development wheel ## test the autograder's archive in a container with Gradescope's limits: honest and cheating submissions, time, memory (20 minutes; needs Docker Engine and root)
	SCPSLAB_AUTOGRADER_WHEEL="$$(ls dist/*.whl)" $(PYTHON) -m pytest --capture=no tests/lab/test_autograder.py

setup: images ## set up everything that is missing: packages, python, images

packages: ## install missing system packages (asks for sudo only if one is missing)
	@tools/packages

python: packages ## make the Python environment in .venv: what the laboratory needs
	@tools/setup-python

development: python ## add to .venv what tests and lints need
	@tools/setup-python --development

images: python ## build lab kernel, guest image and guest programs into the user's cache folder; WHEEL=FILE.whl takes them from there
	@$(PYTHON) -m $(if $(WHEEL),tools.build take "$(WHEEL)",scpslab.setup)

pin: python ## write the package versions that the mirror has today into the recipes of kernel and guest (maintainers; docs/decisions/0021)
	@$(PYTHON) -m tools.build pin

published: images ## write the hashes of the parts built here into images/published.txt (maintainers, after a change of a recipe)
	@$(PYTHON) -m tools.build published

lint: development site lint-playbooks ## check formatting, style, types, shell, YAML, repository rules, links of the site, playbooks, Dockerfiles, Rust
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	shellcheck $(SCRIPTS)
	.venv/bin/yamllint --strict .
	$(PYTHON) -m pytest tests/test_tidy.py
	@tools/with-cargo $(MAKE) -C stack lint

lint-playbooks: .venv-machines/done ## lint playbooks (ansible-lint, profile production) and Dockerfiles (hadolint), in an environment of its own
	cd playbooks && ../.venv-machines/bin/ansible-lint --offline site.yml fleet.yml reset.yml remove.yml requirements.yml inventory/example.yml
	.venv-machines/bin/hadolint $(wildcard images/*/Dockerfile)

.venv-machines/done: playbooks/requirements.lock
	python3 -m venv --clear .venv-machines
	.venv-machines/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes --requirement $<
	touch $@

docker-images: python ## build the Docker images of nodes, and start each until its health check has answered (needs Docker Engine)
	tools/build-images --check

playbooks-test: python .venv-machines/done ## run the playbooks over SSH against a fresh Debian: first and second run, check mode (needs Docker Engine and root)
	tools/playbooks-test

vagrant-test: python ## make a box from Debian's packages and start a machine from it with vagrant up (needs root; more than an hour without KVM)
	tools/vagrant-test

fmt: development ## format the code, and fix what the linters can fix automatically
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

docs: python ## regenerate the scenario's JSON Schema and reference, and the tables of plan keys
	@$(PYTHON) -m tools.reference

site: python ## build the documentation's site into site/, to be opened without a server; fails on a broken link or anchor
	@tools/setup-python --site
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build

slides: setup ## make the course's slides into build/slides/*.pdf, with figures that the laboratory draws (docs/course/slides; needs pandoc and weasyprint)
	tools/slides

prompt-picture: setup ## draw docs/images/prompt.svg from a session at the prompt (half a minute, on the wall clock)
	$(PYTHON) tools/prompt_picture.py

studio-pictures: setup development ## take README's pictures of the studio from a run of the demo (a minute; needs Debian's chromium)
	$(PYTHON) tools/studio_pictures.py

same-bytes: setup ## run some 30 cells of every kind with this tree and with the commit REF, and compare all bytes (five minutes; OPTIONS=--but-drawn)
	@test -n "$(REF)" || { echo "error: REF: found none; expected the commit to compare with. Run: make same-bytes REF=main~1" >&2; exit 2; }
	$(PYTHON) tools/same_bytes.py "$(REF)" $(OPTIONS)

bench: setup ## measure the figures of docs/performance.md, beside ns-3 and the kernel's TCP (libns3-dev; root for a part; 20 minutes); PART="cells runs" measures some
	@tools/bench $(PART)

ci: ## run everything that must pass before a change lands
	.ci/run

wheel: images .venv-release/done ## make the wheel that carries all built parts, and the sdist, in dist/; APPLIANCE=no saves 10 to 30 minutes the first time, for x86-64 alone
	tools/wheel

instructors: python ## pack the instructors' parts of the assignments into build/scpslab-instructors-VERSION.tar.gz, which no wheel, image or site has (docs/teaching.md)
	$(PYTHON) -m tools.instructors

student-kit: wheel ## pack what a student needs for vagrant up into build/scpslab-student-VERSION.tar.gz: the project without markings and solutions, and the wheel (docs/vagrant.md)
	tools/student-kit

wheel-test: wheel ## install the wheel in fresh Debian 12 and 13 without compilers, root and network, run the demo, and compare its bytes (needs Docker Engine)
	tools/wheel-test

image: wheel ## build the Docker image scpslab from the wheel, and run the demo in it: no root, read-only, same bytes as here (needs Docker Engine)
	tools/image/build --check

image-arm64: wheel ## build the image for arm64, scpslab-arm64, with QEMU for the appliance; emulated on other machines (needs Docker Engine and qemu-user-static)
	tools/image/build --arm64

release: image ## what a release consists of, in dist/: wheel, sdist, Docker image, SBOM, provenance of every part, checksums (docs/formats.md, docs/licenses.md; needs Docker Engine)
	tools/release

.venv-release/done: tools/release.lock
	python3 -m venv --clear .venv-release
	.venv-release/bin/pip install --quiet --disable-pip-version-check --only-binary :all: --require-hashes --requirement $<
	touch $@

clean: ## remove the Python environment, the site and tools' caches; runs and the cache folder stay (see scpslab clean)
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache
