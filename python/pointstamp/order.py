"""The order of timestamps: antichains, and the effect of path summaries on a time.

A timestamp is a point in N^k: ``()``, an ``int``, or a flat tuple of ints. One comes before another when no
coordinate is greater. That is a partial order, and not the one in which Python sorts tuples. A path summary
is the increment of each coordinate along a path through a dataflow; one ``int`` is added to the last.
"""

from pointstamp._core import Antichain, MutableAntichain, followed_by, less_equal, results_in

__all__ = ["Antichain", "MutableAntichain", "followed_by", "less_equal", "results_in"]
