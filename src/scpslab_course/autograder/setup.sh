#!/usr/bin/env bash
# Runs once, as root, when the platform builds the container: installs scpslab from the wheels beside this file, and makes everything ready that a grading
# would otherwise do each time. It needs no network, unless Python is missing: then it installs Debian's packages of it.
set -euo pipefail
source=/autograder/source
place=/autograder/scpslab
read -ra versions <"$source/pythons"

find_python() {
	local version
	for version in "${versions[@]}"; do
		if "python$version" -c 'import ensurepip, venv' 2>/dev/null; then
			echo "python$version"
			return
		fi
	done
	return 1
}

if ! python=$(find_python); then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update --quiet=2
	for version in "${versions[@]}"; do
		apt-get install --yes --quiet --no-install-recommends "python$version" "python$version-venv" && break
	done
	if ! python=$(find_python); then
		echo "error: python: found none of the versions ${versions[*]} with its venv module; expected one. Make the archive again for the container's version: --python." >&2
		exit 3
	fi
fi
"$python" -m venv "$place"
"$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --find-links "$source/wheels" --requirement "$source/requirements.txt"
rm -r "$source/wheels"
SCPSLAB_CACHE=$place/cache "$place/bin/python" -I -m scpslab_course.autograder prepare
