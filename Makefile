# What people and CI run. `make help` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help install run demo test check fuzz fidelity bench capacity stress soak manifests requirements tools controlplane test-clients test-cluster record-answers

# The first that is new enough; asked only when .venv is made.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
# Tools built or installed here come first; kubectl may be one of them.
export PATH := $(CURDIR)/$(BIN):$(PATH):/usr/local/go/bin

SERVER := $(if $(DATA),--data "$(DATA)") $(if $(PORT),--port $(PORT))
KUBECTL_VERSION := 1.34.2
BUILD := .build
# Where there is no Go, or one that is too old, the pinned wheel of one is installed into .venv, which comes first in PATH.
NEED_GO = go version 2>/dev/null | grep -Eq 'go1\.(2[4-9]|[3-9][0-9])' || { \
	echo 'There is no Go 1.24 or newer here: installing that of requirements/go.txt into $(VENV)' >&2; \
	$(PIP) install --require-hashes --requirement requirements/go.txt; } || { \
	echo '$@ is built from Go modules, and there is no Go, nor could one be installed: install golang-go 1.24 or newer' >&2; exit 1; }
NOT_BUILT = { echo '$@ could not be built, go said above why. It downloads modules from where GOPROXY leads ("go env GOPROXY"); $< pins them' >&2; exit 1; }
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=false
GO_VERSION_FLAGS = -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=v$(KUBECTL_VERSION)'
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --no-header --strip-extras --allow-unsafe \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "make %-15s %s\n", $$1, $$2 }'
	@echo 'run and demo take DATA=dir and PORT=n; test, fuzz, fidelity and bench take ARGS="...".'

install: $(VENV)/.run ## .venv with the pinned requirements and bin/porch

run: $(VENV)/.run ## a standalone server with its controllers until Ctrl-C
	@exec $(BIN)/porch serve --controllers $(SERVER)

demo: $(VENV)/.run ## the life of a package, each command with its output
	@exec $(BIN)/porch demo $(SERVER)

test: $(VENV)/.dev tools ## every test that needs no cluster, in two halves side by side; ARGS="tests/unit -k gates": some, one after the other
	$(if $(ARGS),$(BIN)/pytest $(ARGS),$(BIN)/python tests/halves.py)

check: $(VENV)/.dev ## lint, format, types, imports, generated files fresh
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy apiserver controllers krm migrations storage tests charts/*.py $(wildcard bench)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m apiserver.settings_reference --check
	$(BIN)/python -m controllers.settings_reference --check
	$(BIN)/python -m apiserver.metrics_reference --check
	$(BIN)/python -m controllers.metrics_reference --check
	$(BIN)/python -m apiserver.openapi_documents --check
	$(BIN)/python -m apiserver.api_reference --check
	$(BIN)/python -m apiserver.crd_files --check
	$(BIN)/python charts/setting_names.py --check
	$(BIN)/python charts/values_reference.py --check
	$(BIN)/python charts/raw_manifests.py --check
	$(BIN)/python -m krm.functions.reference --check

fuzz: $(VENV)/.dev tools ## generated tests with new examples, once through
	$(BIN)/pytest -m hypothesis --hypothesis-profile=search $(ARGS)

fidelity: $(VENV)/.dev ## every edit at many places of every corpus file; ARGS="places seed"
	$(BIN)/python tests/unit/krm/package/corpus_fidelity.py $(ARGS)

bench: $(VENV)/.dev tools ## the measurements of docs/benchmarks.md
	$(BIN)/python bench/run.py $(ARGS)

stress: $(VENV)/.dev tools ## watches that break and stall, two minutes; ARGS=--short: some seconds
	$(BIN)/python bench/run.py --only stress --check $(ARGS)

capacity: $(VENV)/.dev tools ## what a revision, a draft, a variant and a watch take, on SQLite, PostgreSQL and in a cluster, half an hour; ARGS=--short: some minutes
	PYTHONPATH=bench $(BIN)/python bench/capacity.py $(ARGS)

KILLS ?= 200
SOAK_SECONDS ?= 1200
CONTEST_SECONDS ?= 300
SPLITS ?= 100
HISTORIES ?= 200

soak: $(VENV)/.dev tools ## KILLS sudden deaths under a mixed load, then SOAK_SECONDS of one, then CONTEST_SECONDS of controllers, then replicas: SPLITS pauses inside a publish, HISTORIES of one revision: 75 minutes in all
	$(BIN)/python tests/soak/kill_run.py --kills $(KILLS)
	$(BIN)/python tests/soak/endurance_run.py --seconds $(SOAK_SECONDS)
	$(BIN)/python tests/soak/contest_run.py --seconds $(CONTEST_SECONDS)
	$(BIN)/python tests/soak/replicas_run.py --rounds $(SPLITS) --histories $(HISTORIES)

manifests: $(VENV)/.dev $(BUILD)/helm ## deploy/*.yaml from the chart, for those without Helm
	$(BIN)/python charts/raw_manifests.py

requirements: $(VENV)/.dev ## resolve requirements/*.txt anew from pyproject.toml
	$(COMPILE) --upgrade --all-build-deps --only-build-deps --output-file requirements/build.txt pyproject.toml
	$(COMPILE) --upgrade --output-file requirements/run.txt pyproject.toml
	$(COMPILE) --upgrade --extra dev --constraint requirements/run.txt --output-file requirements/dev.txt pyproject.toml

tools: $(VENV)/.dev
	@command -v git >/dev/null || { \
	  echo 'The tests serve Git repositories with git: install the package git.' >&2; exit 1; }
	@command -v kubectl >/dev/null || $(MAKE) --no-print-directory $(BIN)/kubectl

$(BIN)/kubectl: tests/tools/kubectl/go.sum | $(VENV)/.dev
	@command -v go >/dev/null || echo 'The tests need kubectl: building it, as there is none (Debian 13: kubernetes-client)' >&2
	@$(NEED_GO)
	cd tests/tools/kubectl && $(GO_BUILD) $(GO_VERSION_FLAGS) -o ../../../$@ . || $(NOT_BUILT)

# What the tests compare with and what other people use; tests/controlplane/README.md. The first build takes ten minutes.
controlplane: $(BUILD)/controlplane $(BUILD)/kubectl $(BUILD)/helm ## build etcd with kube-apiserver, kubectl and Helm from Go modules

$(BUILD)/controlplane: tests/controlplane/go.sum tests/controlplane/main.go | $(VENV)/bin/python
	@$(NEED_GO)
	cd tests/controlplane && $(GO_BUILD) $(GO_VERSION_FLAGS) -o ../../$@ . || $(NOT_BUILT)

$(BUILD)/kubectl: tests/tools/kubectl/go.sum tests/tools/kubectl/main.go | $(VENV)/bin/python
	@$(NEED_GO)
	cd tests/tools/kubectl && $(GO_BUILD) $(GO_VERSION_FLAGS) -o ../../../$@ . || $(NOT_BUILT)

$(BUILD)/helm: tests/tools/helm/go.sum | $(VENV)/bin/python
	@$(NEED_GO)
	cd tests/tools/helm && $(GO_BUILD) -ldflags '-s -w' -o ../../../$@ helm.sh/helm/v3/cmd/helm || $(NOT_BUILT)

# Without the discoveries of every cloud it is a third of itself.
$(BUILD)/promtool: tests/tools/promtool/go.sum | $(VENV)/bin/python
	@$(NEED_GO)
	cd tests/tools/promtool && $(GO_BUILD) -tags remove_all_sd -ldflags '-s -w' -o ../../../$@ \
	  github.com/prometheus/prometheus/cmd/promtool || $(NOT_BUILT)

# Tests of a standalone server that are tests of one behind a kube-apiserver, too, and those that need a cluster in any case.
THROUGH_AGGREGATOR := $(addprefix tests/e2e/,test_package_life.py test_gates.py porchctl kubectl_checks revision_checks)

test-cluster: $(VENV)/.dev tools $(BUILD)/controlplane $(BUILD)/helm $(BUILD)/promtool ## a real kube-apiserver with our server behind it; ten minutes, the first build as many more
	$(BIN)/python tests/again.py tests/aggregated $(ARGS)
	$(BIN)/python tests/again.py tests/chart $(ARGS)
	$(BIN)/python tests/again.py --cluster -- $(THROUGH_AGGREGATOR) $(ARGS)

# Other people's clients besides: controllers of two releases, the Helm that applies on the server, kubectl old and new.
CLIENTS := clients clients-newest helm helm-4
KUBECTLS := kubectl kubectl-1.28 kubectl-1.37

test-clients: $(VENV)/.dev tools $(addprefix $(BUILD)/,$(CLIENTS) $(KUBECTLS)) ## other people's clients, built from Go modules
	$(BIN)/pytest tests/clients/test_go_clients.py tests/clients/test_go_collisions.py tests/clients/test_helm.py $(ARGS)
	for kubectl in $(KUBECTLS); do \
	  KUBECTL='$(CURDIR)/$(BUILD)/'$$kubectl $(BIN)/pytest tests/e2e/kubectl_checks $(ARGS) || exit 1; done

$(BUILD)/clients: tests/clients/go/go.sum $(wildcard tests/clients/go/*.go) | $(VENV)/bin/python
	@$(NEED_GO)
	cd tests/clients/go && $(GO_BUILD) -ldflags '-s -w' -o ../../../$@ . || $(NOT_BUILT)

$(BUILD)/clients-newest: tests/clients/go/newest.sum $(wildcard tests/clients/go/*.go) | $(VENV)/bin/python
	@$(NEED_GO)
	cd tests/clients/go && $(GO_BUILD) -modfile=newest.mod -ldflags '-s -w' -o ../../../$@ . || $(NOT_BUILT)

$(BUILD)/helm-4: tests/tools/helm/helm-4.sum | $(VENV)/bin/python
	@$(NEED_GO)
	cd tests/tools/helm && $(GO_BUILD) -modfile=helm-4.mod -ldflags '-s -w' -o ../../../$@ helm.sh/helm/v4/cmd/helm || $(NOT_BUILT)

$(BUILD)/kubectl-1.28: KUBECTL_VERSION := 1.28.3
$(BUILD)/kubectl-1.37: KUBECTL_VERSION := 1.37.2
$(BUILD)/kubectl-%: tests/tools/kubectl/kubectl-%.sum tests/tools/kubectl/main.go | $(VENV)/bin/python
	@$(NEED_GO)
	cd tests/tools/kubectl && $(GO_BUILD) -modfile=kubectl-$*.mod $(GO_VERSION_FLAGS) -o ../../../$@ . || $(NOT_BUILT)

record-answers: $(VENV)/.dev $(BUILD)/controlplane ## ask the real kube-apiserver again what tests/differential compares with
	PYTHONPATH=tests:tests/differential $(BIN)/python tests/differential/record.py $(ARGS)

$(VENV)/bin/python:
	@test -n '$(PYTHON)' || { \
	  echo 'Porch needs Python 3.11 or newer: install it, or name it: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); echo 'Python has no venv module here (Debian: install the package python3-venv).' >&2; exit 1; }

# Made once; newer requirements or metadata make them again. The project is editable: a checkout runs as it stands.
$(VENV)/.run: requirements/build.txt requirements/run.txt pyproject.toml | $(VENV)/bin/python
	$(PIP) install --require-hashes --requirement requirements/build.txt --requirement requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@# Where Python is told not to write bytecode, every start of bin/porch would compile the sources anew.
	$(BIN)/python -m compileall -q apiserver controllers krm migrations storage
	@touch $@

$(VENV)/.dev: requirements/dev.txt | $(VENV)/.run
	$(PIP) install --require-hashes --requirement requirements/dev.txt
	@touch $@
