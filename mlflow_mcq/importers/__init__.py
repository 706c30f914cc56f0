"""Importers: answers that other harnesses stored, as a table that can be read here.

Each returns one row an answer: ``id``, ``question``, ``options`` (a list, in the order of the
data), ``answer`` (the letter of the gold option in that order), ``order`` (the option shown in
each slot), ``generation`` (raw; None where the file holds none) and ``repeat``. Pass it on as
``mlflow_mcq.evaluate(None, frame, ...)``.

None of them guesses. The order in which options were shown is taken from the prompt that the
file holds; where it holds none, the row is refused, since a wrong order scores every answer
against the wrong key and nobody would see it.
"""
