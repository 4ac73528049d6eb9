"""The baselines that papers compare with, one file each."""
