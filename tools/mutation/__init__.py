"""Mutation testing of a crate in one build: the parts of `tools/mutate.py`.

A test that cannot fail is useless. So the code of a crate is changed in one place at a time, as cargo-mutants
would change it (`a < b` becomes `a <= b`, a function returns a constant, an arm of a match is removed), and
the crate's tests are run. Each change has to make one of them fail. One that does not, a survivor, shows a
missing test, or a change that cannot be noticed; then `.cargo/mutants.toml` says why, and it is not made.

cargo-mutants builds the tests anew for each change. Here all changes are planted in a copy of the workspace
at once, each behind a number that is read from the environment, and the tests are built once. A change then
costs only the run of the tests, and only those test programs are run that reach it.

- `found` lists the changes of a crate: its files are parsed with tree-sitter.
- `values` has the values that a function may return in place of its result.
- `planted` writes the copy, and takes out the changes that do not compile.
- `tests` builds the tests and runs them with a change.
- `outcomes` is the outcome of each, and its summary.

Limits: documentation tests are not run, functions that a macro writes are not changed, and neither are fields
of a struct expression that ends in `..`.
"""
