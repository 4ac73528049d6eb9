"""Sia (SOSP 2023): goodput of elastic jobs on several GPU types, an integer program each round."""
