"""Every fitted or chosen timing scalar, with range, prior and origin."""
