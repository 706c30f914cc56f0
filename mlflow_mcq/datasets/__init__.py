"""Readers: from what people have to items."""
