"""`python -m archsim`."""

from archsim.cli.main import main

if __name__ == "__main__":
    main()
