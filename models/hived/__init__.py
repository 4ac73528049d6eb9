"""HiveD (OSDI 2020): virtual clusters of cells, bound to the cluster by buddy allocation."""
