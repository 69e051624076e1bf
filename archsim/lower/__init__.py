"""Lowering: from the ops of a network to the kernels that a stack launches for them."""
