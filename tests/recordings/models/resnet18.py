import torch

try:
    import torchvision
except RuntimeError:
    for name in ("nms", "qnms"):
        torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")
    import torchvision

torch.manual_seed(0)
model = torchvision.models.resnet18(weights=None, num_classes=10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for _ in range(3):
    images = torch.randn(4, 3, 64, 64)
    labels = torch.randint(0, 10, (4,))
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
print(loss.item())
