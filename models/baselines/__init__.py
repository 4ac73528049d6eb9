"""The rules that papers compare with: one file each."""
