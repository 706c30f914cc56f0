"""The command line: ``mlflow-mcq``, or ``python -m mlflow_mcq``.

Commands import what they need when they run, so that ``--help`` answers at once.
"""
