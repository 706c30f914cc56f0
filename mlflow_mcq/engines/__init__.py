"""Engines: where answers come from. Weights here, a server, a function, or stored data.

Light to import: torch, transformers, aiohttp and pandas are loaded at first use.
"""
