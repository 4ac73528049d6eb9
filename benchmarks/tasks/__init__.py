"""What is asked of contenders, and how answers are judged: one file for each kind of problem."""
