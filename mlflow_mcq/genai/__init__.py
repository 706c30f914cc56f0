"""Multiple choice in `mlflow.genai.evaluate`: rows before it, scorers in it, numbers after it."""
