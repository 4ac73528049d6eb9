"""Evidence that can be checked without trusting fairopt: the verifier, the ledger, counterexamples, theorems."""
