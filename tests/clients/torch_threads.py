"""Two threads, each with a stream and tensors of its own. They read what comes by .cpu(), which waits."""

import threading

import torch

totals = [0.0, 0.0]


def work(number: int, stream: torch.cuda.Stream) -> None:
    with torch.cuda.stream(stream):
        values = torch.ones(1 << 16, device="cuda")
        for _ in range(15):
            values = values * 2
            stream.synchronize()  # problem: .cpu() waits, too
            totals[number] += float(values.cpu()[0])


threads = [threading.Thread(target=work, args=(number, torch.cuda.Stream())) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
