"""Software stacks: which library and framework runs a network, and what they are known to do."""
