"""Karma (OSDI 2023): users who lend GPUs now are first to borrow later, by credits."""
