"""Which truthful rules there are for few users and types, and which there cannot be."""
