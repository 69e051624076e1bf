"""When each kernel runs: one queue, simulated CUDA streams, request serving, and training on several devices."""
