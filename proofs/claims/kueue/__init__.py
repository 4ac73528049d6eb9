"""What Kueue's documents claim; read at kubernetes-sigs/kueue ff69552e79ad21652c36caa97038382e55625cf7."""
