"""Event time: its unit, how records and columns tell it, and the kinds of windows over it."""
