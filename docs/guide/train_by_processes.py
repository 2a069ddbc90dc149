"""Train an embedding model by several processes: torchrun --nproc-per-node 2 train_by_processes.py."""

import torch
from torch import distributed

from skellipsoid import SupConTextEncoder, save
from skellipsoid.datasets import load_assistant_intents

distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
if torch.cuda.is_available():
    torch.cuda.set_device(distributed.get_rank() % torch.cuda.device_count())
texts, labels = load_assistant_intents(subset="train", return_X_y=True)
encoder = SupConTextEncoder(finetune="full", max_iter=1, random_state=0)
encoder.fit(texts[:64], labels[:64])
if distributed.get_rank() == 0:
    save(encoder, "my-encoder")
distributed.destroy_process_group()
