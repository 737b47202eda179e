import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)
config = BertConfig(
    vocab_size=211,
    hidden_size=48,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=32,
    num_labels=3,
)
model = BertForSequenceClassification(config)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(3):
    ids = torch.randint(0, 211, (4, 24))
    mask = torch.ones(4, 24, dtype=torch.long)
    mask[1, 10:] = 0
    labels = torch.randint(0, 3, (4,))
    optimizer.zero_grad()
    out = model(input_ids=ids, attention_mask=mask, labels=labels)
    out.loss.backward()
    optimizer.step()
print(out.loss.item())
