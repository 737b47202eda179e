import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

torch.manual_seed(0)
lstm = nn.LSTM(4, 5, batch_first=True)
x = torch.randn(3, 6, 4)
lengths = torch.tensor([6, 4, 2])
packed = pack_padded_sequence(x, lengths, batch_first=True)
out, (h, c) = lstm(packed)
padded, _ = pad_packed_sequence(out, batch_first=True)
loss = padded.square().sum() + h.sum()
loss.backward()
print(loss.item())
