"""Contenders: the libraries and solvers that one would reach for, and fairopt itself; one file each."""
