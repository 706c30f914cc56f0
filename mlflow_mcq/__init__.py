"""Multiple-choice evaluation for MLflow that you can trust."""
