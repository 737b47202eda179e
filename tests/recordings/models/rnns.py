import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8)
        self.lstm = nn.LSTM(8, 10, num_layers=2, batch_first=True, bidirectional=True, dropout=0.1)
        self.gru = nn.GRU(20, 9, batch_first=True)
        self.rnn = nn.RNN(9, 7, nonlinearity="relu")
        self.cell = nn.LSTMCell(7, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, ids):
        x, _ = self.lstm(self.embed(ids))
        x, _ = self.gru(x)
        x, _ = self.rnn(x.transpose(0, 1))
        h, _ = self.cell(x[-1])
        return self.head(h)


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(3):
    ids, y = torch.randint(0, 30, (4, 6)), torch.randint(0, 3, (4,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(ids), y)
    loss.backward()
    optimizer.step()
print(loss.item())
