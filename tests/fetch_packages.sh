#!/bin/sh
# Downloads packages of several Debian suites into the current folder; nothing is installed, and the system's own
# package lists stay as they are. Fails if one of the packages is unavailable, after trying the others.
#
#   fetch_packages.sh COMPONENT PACKAGE/SUITE...
set -eu
component=$1
shift
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keyring" ] || { echo "$keyring is missing: install debian-archive-keyring." >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/state"
for wanted; do
    echo "deb [arch=amd64 signed-by=$keyring] http://deb.debian.org/debian ${wanted#*/} $component"
done | sort -u >"$work/sources.list"
options="-q -o Dir::Etc::SourceList=$work/sources.list -o Dir::Etc::SourceParts=$work/none
    -o Dir::State=$work/state -o Dir::State::Lists=$work/lists -o Dir::Cache=$work/cache
    -o APT::Architecture=amd64 -o APT::Sandbox::User=$(id -un)"
# The options are several words.
# shellcheck disable=SC2086
apt-get $options update
missing=0
for wanted; do
    # shellcheck disable=SC2086
    apt-get $options download "$wanted" || { echo "no $wanted" >&2; missing=1; }
done
exit $missing
