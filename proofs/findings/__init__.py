"""What we found ourselves, beyond the papers: a folder a subject, with its rows and what decides them."""
