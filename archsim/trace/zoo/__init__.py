"""The shipped networks, written by hand; `python -m archsim.trace.zoo` turns them into trace files."""
