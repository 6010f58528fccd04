"""Mutation testing of a crate in one build: what `tools/mutate.py` consists of.

A test that cannot fail says nothing. So the code of a crate is changed in one place at a time, as
cargo-mutants would change it (`a < b` becomes `a <= b`, a function returns a constant, an arm of a match is
taken out), and the crate's tests are run. Each change has to make one of them fail. One that does not, a
survivor, is a test that is missing, or a change that cannot be noticed; then `.cargo/mutants.toml` says why,
and it is not made.

cargo-mutants builds the tests anew for each change. Here all changes are planted in a copy of the workspace
at once, each behind a number that is read from the environment, and the tests are built once. A change then
costs what the tests cost, and only those test programs are run that come to it.

- `found` lists the changes of a crate: its files are parsed with tree-sitter.
- `values` says what a function may return in place of what it computes.
- `planted` writes the copy, and takes out the changes that do not compile.
- `tests` builds the tests and runs them with a change.
- `outcomes` is what became of each, and its summary.

What it does not do: documentation tests are not run, functions that a macro writes are not changed, and
neither are fields of a struct expression that ends in `..`.
"""
