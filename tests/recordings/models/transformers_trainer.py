import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.manual_seed(0)
config = GPT2Config(vocab_size=211, n_positions=32, n_embd=48, n_layer=2, n_head=4)
model = GPT2LMHeadModel(config)
data = [{"input_ids": torch.randint(0, 211, (16,))} for _ in range(16)]
data = [{**row, "labels": row["input_ids"]} for row in data]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        max_steps=3,
        per_device_train_batch_size=4,
        report_to=[],
        save_strategy="no",
        logging_steps=1,
        use_cpu=True,
        disable_tqdm=True,
        gradient_accumulation_steps=1,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=data)
    trainer.train()
