# Every target makes its own virtual environment first; `make demo` and `make test` need nothing but Python 3.11+ and make.

VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: venv
venv: $(STAMP)

$(STAMP): pyproject.toml tools/make-venv
	@tools/make-venv $(VENV)
	@touch $@
