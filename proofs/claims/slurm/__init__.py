"""What Slurm's documents say of fair share, against its code at commit 284c3b95."""
