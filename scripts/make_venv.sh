#!/usr/bin/env bash
# Makes the virtual environment $2 with the Python $1, unless one with pip is there.
# On Debian venv fails without the package python3-venv, and leaves one without pip behind, which
# the next try completes.
set -euo pipefail
python=$1
folder=$2

has_pip() {
  [[ -x "$folder/bin/python" ]] && "$folder/bin/python" -m pip --version >/dev/null 2>&1
}

has_pip && exit 0
told=$("$python" -m venv "$folder" 2>&1) || true
has_pip && exit 0

{
  echo "error: $python -m venv $folder made no virtual environment with pip"
  [[ -n "$told" ]] && echo "$told"
  echo "hint: install what it lacks, then run make again"
  echo "  Debian, Ubuntu:  sudo apt-get install python3-venv"
  echo "  or use another Python 3.11+: make PYTHON=python3.12 <target>"
} >&2
exit 1
