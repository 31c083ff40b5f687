#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Creates the virtual environment $1 and installs the pinned requirements into it.
set -euo pipefail

venv=$1
folder=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  echo "error: Python 3.11 or newer is needed" >&2
  echo "  actual:   $("$python" --version 2>&1 || true) as $python" >&2
  echo "  fix:      make PYTHON=/usr/bin/python3.11" >&2
  exit 3
fi
[[ -x $venv/bin/python ]] || "$python" -m venv "$venv"

install() { "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" </dev/null; }
echo "setup: installing Python packages into $venv (the first time takes some minutes)" >&2
install -c "$folder/constraints.txt" -r "$folder/requirements.txt"
install --no-deps -r "$folder/requirements-no-deps.txt"
