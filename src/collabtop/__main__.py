"""`python -m collabtop`: the command line, where the `collabtop` command is not on the path."""

from collabtop.cli import main

if __name__ == "__main__":
    main()
