"""archsim predicts the time and energy that neural networks take on CPUs and GPUs."""

__version__ = "0.1.0"
