#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of debian-packages.txt that are missing; without root it names them and fails.
set -euo pipefail

folder=$(cd "$(dirname "$0")" && pwd)
mapfile -t wanted < <(sed 's/#.*//' "$folder/debian-packages.txt" | awk 'NF { print $1 }')

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is no Debian system; install what setup/debian-packages.txt lists in your own way" >&2
  exit 0
fi

missing=()
for package in "${wanted[@]}"; do
  [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) == ii* ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

if [[ $EUID -ne 0 ]]; then
  echo "error: Debian packages are missing, and only root can install them" >&2
  echo "  actual:   missing ${missing[*]}" >&2
  echo "  fix:      sudo apt-get install ${missing[*]}" >&2
  exit 3
fi

echo "setup: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq </dev/null
apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
