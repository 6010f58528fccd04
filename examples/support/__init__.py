"""Parts of several examples."""
