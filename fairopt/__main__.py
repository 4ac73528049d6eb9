"""``python -m fairopt`` is the command ``fairopt``."""

from fairopt.cli import main

main()
