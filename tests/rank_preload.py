"""Loaded once by the server that test processes are forked from."""

import accelerate  # noqa: F401
import mlflow.models  # noqa: F401
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM  # noqa: F401

import mlflow_mcq.front
import mlflow_mcq.generation
import mlflow_mcq.report  # noqa: F401

torch.set_num_threads(1)
transformers.utils.logging.disable_progress_bar()
