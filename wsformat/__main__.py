"""`python -m wsformat` is the command `wsformat`."""

from wsformat.cli.main import main

if __name__ == "__main__":
    main()
