"""Rows kept on disk as they are made, so that a crash costs at most the one under way."""
