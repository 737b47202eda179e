import time

from tqdm import tqdm

for epoch in range(2):
    bar = tqdm(range(4), desc=f"epoch {epoch}")
    for step in bar:
        time.sleep(0.12)
        bar.set_postfix(loss=f"{1 / (1 + step + epoch):.3f}")
for _ in tqdm(range(2), desc="outer"):
    for _ in tqdm(range(3), desc="inner", leave=False):
        time.sleep(0.12)
tqdm.write("\x1b[32mdone\x1b[0m")
for n in range(3):
    print(f"\rcount {n}", end="")
    time.sleep(0.05)
print()
