"""Operators of the library that are written in Python, on top of `Stream.unary_frontier` and its kin.

Each module holds one operator as a function that makes its constructor; `Stream`'s method of that name
adds it to a dataflow. Operators that do their work per record in Rust are in the extension module instead.
"""
