#!/bin/sh
# Says which of the tools that the Makefile needs are missing, and how to get each; exits 1 if any is.
# Usage: tools/prerequisites.sh PYTHON RUST_VERSION [component ...]
#   PYTHON         the interpreter to use (>= 3.10, with venv)
#   RUST_VERSION   the oldest Rust that the workspace accepts
#   component      rustup components that a target needs besides: rustfmt, clippy
set -u
python=$1 rust=$2
shift 2
missing=0

lacks() {
    [ "$missing" = 0 ] && echo "Something that this needs is missing:" >&2
    missing=1
    printf '\n  %s\n    %s\n' "$1" "$2" >&2
}

# True when version $1 is at least version $2 (major.minor).
at_least() {
    major=${1%%.*} rest=${1#*.} minor=${rest%%.*}
    [ "$major" -gt "${2%%.*}" ] || { [ "$major" -eq "${2%%.*}" ] && [ "$minor" -ge "${2#*.}" ]; }
}

if ! command -v "$python" >/dev/null 2>&1; then
    lacks "Python 3.10 or newer: there is no '$python' on the PATH" \
        "Install it from https://www.python.org/downloads/ (Debian, Ubuntu: apt install python3 python3-venv), or name one: make PYTHON=/path/to/python3"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    lacks "Python 3.10 or newer: '$python' is $("$python" -c 'import platform; print(platform.python_version())' 2>/dev/null || echo 'not a working Python 3')" \
        "Install a newer one from https://www.python.org/downloads/ and name it: make PYTHON=/path/to/python3"
elif ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    lacks "the venv module of '$python'" "Debian, Ubuntu: apt install python3-venv"
fi

if ! command -v cargo >/dev/null 2>&1 || ! command -v rustc >/dev/null 2>&1; then
    lacks "Rust $rust or newer: there is no cargo on the PATH" \
        "Install it from https://rustup.rs, then open a new shell or run: . \"\$HOME/.cargo/env\""
else
    have=$(rustc --version 2>/dev/null | cut -d' ' -f2)
    if [ -z "$have" ] || ! at_least "$have" "$rust"; then
        lacks "Rust $rust or newer: rustc is ${have:-not working}" "Run: rustup update stable (https://rustup.rs)"
    fi
    for component in "$@"; do
        case $component in rustfmt) tool=rustfmt ;; *) tool=cargo-$component ;; esac
        "$tool" --version >/dev/null 2>&1 || lacks "$component, a part of the Rust toolchain" "Run: rustup component add $component"
    done
fi

if ! command -v cc >/dev/null 2>&1; then
    lacks "a C toolchain, for its linker: there is no cc on the PATH" \
        "Debian, Ubuntu: apt install build-essential.  macOS: xcode-select --install"
fi

[ "$missing" = 0 ] || echo >&2
exit "$missing"
